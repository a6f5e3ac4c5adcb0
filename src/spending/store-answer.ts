/** The answer of a spend whose end is not known yet, such as a settlement that is pending. */

import type { Json } from '../json.ts'
import type { Connection, Statement } from '../storage/database.ts'

const statement: Statement = { name: 'spend_answer', text: 'select stored from spend_answer($1, $2)' }

/**
 * Keeps what the call of an allowed spend was answered, for its replays, unless it has an answer. Settling or releasing may
 * replace it. @returns false where there is an answer already or the call had no idempotency key.
 */
export async function storeAnswer(
  connection: Connection,
  { decisionId, answer }: { readonly decisionId: string; readonly answer: Json },
): Promise<boolean> {
  const [row] = await connection.call<{ stored: boolean }>(statement, [decisionId, JSON.stringify(answer)])
  return row?.stored ?? false
}
