/** Settlement of a spend that happened. */

import { type Connection, callForRow, type Statement } from '../../storage/database.ts'
import type { LedgerAccount } from '../ledger/accounts.ts'

/** A spend whose money has left. */
export interface Settlement {
  readonly decisionId: string
  /** Account that receives the held money, such as `external:base-sepolia`. */
  readonly destination: LedgerAccount
  readonly at: Date
}

/** Result of a settlement. Only `settled` changed anything; `not_reserved`: the decision never held money. */
export type SettleVerdict = 'settled' | 'already_settled' | 'already_released' | 'not_reserved'

const statement: Statement = {
  name: 'spend_settle',
  text: "select verdict from spend_resolve($1, 'settled', $2, $3)",
}

export async function settleSpend(
  connection: Connection,
  { decisionId, destination, at }: Settlement,
): Promise<SettleVerdict> {
  const row = await callForRow<{ verdict: SettleVerdict }>(connection, statement, [
    decisionId,
    destination,
    at,
  ])
  return row.verdict
}
