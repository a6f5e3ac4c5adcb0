/** Calls that wait for a lock which a test holds. PostgreSQL only: the embedded engine has one connection. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Connection, Database } from '../src/storage/database.ts'

/** Locks the balances of a ledger account until the transaction ends. */
export async function lockBalance(transaction: Connection, account: string): Promise<void> {
  await transaction.kysely
    .selectFrom('balance')
    .select('units')
    .where('account', '=', account)
    .forUpdate()
    .execute()
}

/** Resolves once a session of this database waits for a lock. Not within a transaction, which would see one moment only. */
export async function blockedCall(database: Database): Promise<void> {
  const statement = {
    name: 'blocked_calls',
    text: `select count(*)::int as count from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`,
  }
  for (;;) {
    const [row] = await database.call<{ count: number }>(statement, [])
    if ((row?.count ?? 0) > 0) return
    await pause(20)
  }
}
