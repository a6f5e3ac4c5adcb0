/** Locks: who is locked and what locks. A lock is read with the account on every request, so it binds the very next one. */
import { Failure } from '../failures/failure.ts'
import type { Connection, Statement } from '../storage/database.ts'
import { pauseKeys } from './keys/owned-keys.ts'
import { revokeSessions } from './store.ts'

/** How many wrong second factors in how long lock an account. */
const MOST_FAILURES = 10
const FAILURE_WINDOW_MS = 60 * 60 * 1000

// The lock that `spend_reserve` takes before it reads the account.
const settleSpends: Statement = {
  name: 'identity_settle_spends',
  text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))',
}

/** Why an account was locked. */
export type LockReason = 'second_factor' | 'admin' | 'person'

/**
 * Holds an account until the transaction's end, so that what is tried against it goes one after the other.
 * @returns its state; undefined where there is no such account.
 */
export async function lockAccountRow(
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

/**
 * Locks an account. Spends that are being decided come first, and none is decided after. A locked account keeps its reason,
 * but an administrator's lock replaces any other. @returns false where there is no such account.
 */
export async function lockAccount(
  database: Connection,
  { accountId, reason, at }: { accountId: string; reason: LockReason; at: Date },
): Promise<boolean> {
  await database.call(settleSpends, [accountId])
  const row = await database.kysely
    .updateTable('account')
    .set((set) => ({
      status: 'locked',
      locked_at: set.fn.coalesce('locked_at', set.val(at)),
      lock_reason: reason === 'admin' ? reason : set.fn.coalesce('lock_reason', set.val(reason)),
    }))
    .where('id', '=', accountId)
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/**
 * Unlocks an account that its owner has recovered and pauses its keys: some may be those of whoever was in it.
 * @throws Failure `account_locked`, committed, where an administrator locked it.
 */
export async function unlockRecovered(
  database: Connection,
  { accountId, at }: { accountId: string; at: Date },
): Promise<void> {
  await database.call(settleSpends, [accountId])
  const row = await database.kysely
    .selectFrom('account')
    .select('lock_reason')
    .where('id', '=', accountId)
    // Not only from changes of the account: keys, passkeys and cards that are being added come first, or see what is done here.
    .forUpdate()
    .executeTakeFirst()
  if (row?.lock_reason === 'admin')
    throw new Failure('account_locked', 'An administrator has locked the account.', {
      isCommitted: true,
      hint: 'Recovery does not undo that. Write to the operator of this deployment.',
    })
  await unlockAccount(database, { accountId, at })
  await pauseKeys(database, accountId)
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
 * Counts a wrong second factor of a signed-in session against its account and locks it at the tenth in an hour.
 * @returns whether it is locked now.
 */
export async function recordFailedFactor(
  database: Connection,
  { accountId, at }: { accountId: string; at: Date },
): Promise<boolean> {
  await lockAccountRow(database, accountId)
  await database.kysely.insertInto('failed_factor').values({ account_id: accountId, at }).execute()
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
