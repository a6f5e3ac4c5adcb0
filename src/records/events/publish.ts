/** Publishes events of committed transactions: numbers them by account, and wakes their readers. */
import type { Connection, Statement } from '../../storage/database.ts'

/** Events that one statement moves. */
export const PUBLISH_BATCH = 1_000

const statement: Statement = { name: 'events_publish', text: 'select * from events_publish($1, $2)' }

/** @returns the number of events that were published. */
export async function publishEvents(database: Pick<Connection, 'call'>, at: Date): Promise<number> {
  const heads = await database.call<{ account_id: string; last_sequence: bigint; moved: bigint }>(statement, [
    PUBLISH_BATCH,
    at,
  ])
  return Number(heads[0]?.moved ?? 0n)
}
