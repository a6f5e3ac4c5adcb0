/** Locks: who is locked and what locks. A lock is read with the account on every request, so it binds the very next one. */
import { sql } from 'kysely'
import type { Connection } from '../storage/database.ts'
import { revokeSessions } from './store.ts'

/** How many wrong codes in how long lock an account. */
const MOST_FAILURES = 10
const FAILURE_WINDOW_MS = 60 * 60 * 1000

/** Why an account was locked. */
export type LockReason = 'second_factor' | 'admin' | 'person'

/**
 * Holds an account until the transaction's end, so that what is tried against it goes one after the other.
 * @returns its state; undefined where there is no such account.
 */
export async function holdAccount(
  database: Connection,
  accountId: string,
): Promise<'active' | 'locked' | undefined> {
  const row = await database.kysely
    .selectFrom('account')
    .select('status')
    .where('id', '=', accountId)
    .forNoKeyUpdate()
    .executeTakeFirst()
  return row?.status
}

/** Locks an account. One that is locked keeps its first reason. @returns false where there is no such account. */
export async function lockAccount(
  database: Connection,
  { accountId, reason, at }: { accountId: string; reason: LockReason; at: Date },
): Promise<boolean> {
  const row = await database.kysely
    .updateTable('account')
    .set((set) => ({
      status: 'locked',
      locked_at: set.fn.coalesce('locked_at', set.val(at)),
      lock_reason: set.fn.coalesce('lock_reason', set.val(reason)),
    }))
    .where('id', '=', accountId)
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/** Unlocks an account, forgets its failures and ends all its sessions. @returns false where there is no such account. */
export async function unlockAccount(
  database: Connection,
  { accountId, at }: { accountId: string; at: Date },
): Promise<boolean> {
  const row = await database.kysely
    .updateTable('account')
    .set({ status: 'active', locked_at: null, lock_reason: null })
    .where('id', '=', accountId)
    .returning('id')
    .executeTakeFirst()
  if (row === undefined) return false
  await database.kysely.deleteFrom('failed_factor').where('account_id', '=', accountId).execute()
  await revokeSessions(database, { accountId, at })
  return true
}

/**
 * Counts a wrong code against an account and locks it at the tenth in an hour. For an id that is nobody's it asks the same
 * and changes nothing, so that its time does not tell who exists.
 * @returns whether it is locked now.
 */
export async function recordFailedFactor(
  database: Connection,
  { accountId, at }: { accountId: string; at: Date },
): Promise<boolean> {
  await holdAccount(database, accountId)
  await database.kysely
    .insertInto('failed_factor')
    .columns(['account_id', 'at'])
    .expression((query) =>
      query
        .selectFrom('account')
        .select(['account.id', sql<Date>`${at}::timestamptz`.as('at')])
        .where('account.id', '=', accountId),
    )
    .execute()
  const { failures } = await database.kysely
    .selectFrom('failed_factor')
    .select(({ fn }) => fn.countAll<bigint>().as('failures'))
    .where('account_id', '=', accountId)
    .where('at', '>', new Date(at.getTime() - FAILURE_WINDOW_MS))
    .executeTakeFirstOrThrow()
  if (failures < MOST_FAILURES) return false
  return lockAccount(database, { accountId, reason: 'second_factor', at })
}

/** Forgets failures that no longer count. */
export async function sweepFailedFactors(database: Connection, now: Date): Promise<void> {
  await database.kysely
    .deleteFrom('failed_factor')
    .where('at', '<', new Date(now.getTime() - FAILURE_WINDOW_MS))
    .execute()
}
