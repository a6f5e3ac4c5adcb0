/** Account locks. A lock is read with the account on every request, so it applies immediately. */
import type { Connection, Statement } from '../../storage/database.ts'
import { pauseKeys } from './keys/owned-keys.ts'
import { revokeSessions } from './store.ts'

/** Failed second factors within the window that lock an account. */
const MAX_FAILURES = 10
const FAILURE_WINDOW_MS = 60 * 60 * 1000

// The advisory lock that `spend_reserve` takes before it reads the account.
const settleSpends: Statement = {
  name: 'identity_settle_spends',
  text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))',
}

/** Waits for pending spend decisions of an account. A later one waits until the transaction ends. */
export async function waitForSpends(database: Connection, accountId: string): Promise<void> {
  await database.call(settleSpends, [accountId])
}

export type LockReason = 'second_factor' | 'admin' | 'person'

/**
 * Locks the account row until the transaction ends, which serializes attempts against the account. @returns its
 * status; undefined if it does not exist.
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

/** {@link lockAccountRow} for a person: theirs is the lock of their membership, where they have one. */
export async function lockPersonRow(
  database: Connection,
  personId: string,
): Promise<'active' | 'locked' | undefined> {
  const status = await lockAccountRow(database, personId)
  const row = await database.kysely
    .selectFrom('membership')
    .select('locked_at')
    .where('person_id', '=', personId)
    .executeTakeFirst()
  if (row === undefined) return status
  return row.locked_at === null ? 'active' : 'locked'
}

/**
 * Locks a person out. One who is alone in their account locks the account with it; one of several people only loses their own access.
 * @returns true if they are locked now.
 */
export async function lockPerson(
  database: Connection,
  { personId, reason, at }: { personId: string; reason: LockReason; at: Date },
): Promise<boolean> {
  const row = await database.kysely
    .updateTable('membership')
    .set((set) => ({ locked_at: set.fn.coalesce('locked_at', set.val(at)) }))
    .where('person_id', '=', personId)
    .returning('person_id')
    .executeTakeFirst()
  return row !== undefined || lockAccount(database, { accountId: personId, reason, at })
}

/** Ends the lock and all sessions of one of several people, after their recovery. */
export async function unlockPerson(
  database: Connection,
  { personId, at }: { personId: string; at: Date },
): Promise<void> {
  await database.kysely
    .updateTable('membership')
    .set({ locked_at: null })
    .where('person_id', '=', personId)
    .execute()
  await database.kysely.deleteFrom('failed_factor').where('account_id', '=', personId).execute()
  await revokeSessions(database, { accountId: personId, at })
}

/** Unlocks the account of a recovered owner and pauses its keys; the sessions of the other people go on. */
export async function unlockShared(
  database: Connection,
  { accountId, at }: { accountId: string; at: Date },
): Promise<void> {
  await database.kysely
    .updateTable('account')
    .set({ status: 'active', locked_at: null, lock_reason: null })
    .where('id', '=', accountId)
    .execute()
  await pauseKeys(database, { accountId, at })
}

/**
 * Locks an account. Waits for pending spend decisions; no later spend is allowed. The first reason is kept, except
 * that an administrator's lock replaces any other. @returns false if the account does not exist.
 */
export async function lockAccount(
  database: Connection,
  { accountId, reason, at }: { accountId: string; reason: LockReason; at: Date },
): Promise<boolean> {
  await waitForSpends(database, accountId)
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
 * Locks the rows that a recovery changes until the transaction ends, and waits for pending spend decisions.
 * @returns the start of an administrator's lock; null if none locked the account.
 */
export async function lockForRecovery(database: Connection, accountId: string): Promise<Date | null> {
  await waitForSpends(database, accountId)
  const row = await database.kysely
    .selectFrom('account')
    .select(['lock_reason', 'locked_at'])
    .where('id', '=', accountId)
    // The stronger row lock also waits for keys, passkeys and cards that are being added.
    .forUpdate()
    .executeTakeFirst()
  return row?.lock_reason === 'admin' ? row.locked_at : null
}

/**
 * Unlocks a recovered account and pauses its keys, because an intruder may have created some. The caller has called
 * {@link lockForRecovery}.
 */
export async function unlockRecovered(
  database: Connection,
  { accountId, at }: { accountId: string; at: Date },
): Promise<void> {
  await unlockAccount(database, { accountId, at })
  await pauseKeys(database, { accountId, at })
}

/**
 * Unlocks an account, clears its failed factors and revokes all its sessions. @returns false if the account does not
 * exist.
 */
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
  await database.kysely
    .updateTable('membership')
    .set({ locked_at: null })
    .where('person_id', '=', accountId)
    .execute()
  await database.kysely.deleteFrom('failed_factor').where('account_id', '=', accountId).execute()
  await revokeSessions(database, { accountId, at })
  return true
}

/**
 * Counts a failed second factor of a signed-in session, and locks the person at the tenth within an hour. @param accountId the
 * person's own account. @returns true if they are now locked.
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
  if (failures < MAX_FAILURES) return false
  return lockPerson(database, { personId: accountId, reason: 'second_factor', at })
}

/** Deletes failures outside the window. */
export async function sweepFailedFactors(database: Connection, now: Date): Promise<void> {
  await database.kysely
    .deleteFrom('failed_factor')
    .where('at', '<', new Date(now.getTime() - FAILURE_WINDOW_MS))
    .execute()
}
