/**
 * Recoveries of accounts that an administrator locked. The person has proved themselves; an administrator decides, once.
 * Until then nothing of the account changes.
 */
import { z } from 'zod'
import type { NewId } from '../../core/base/ids.ts'
import type { Page } from '../../core/base/page.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Connection } from '../../storage/database.ts'
import { lockForRecovery, unlockRecovered } from './locks.ts'

/** Proof shown for a recovery. `guest`: only the id of a sandbox guest, who has nothing else. */
export const recoveryProof = z.enum(['code', 'passkey', 'guest'])
export type RecoveryProof = z.output<typeof recoveryProof>

export interface RecoveryReview {
  readonly id: string
  readonly accountId: string
  readonly proofs: readonly RecoveryProof[]
  readonly status: 'open' | 'released' | 'blocked'
  readonly createdAt: Date
  readonly decidedBy: string | null
  readonly decidedAt: Date | null
  readonly reason: string | null
}

/**
 * Asks an administrator to decide on a proven recovery, once while it waits. The caller holds the account's lock.
 * @param lockedAt start of the lock. @returns whether it is a new question. @throws Failure `account_locked`, committed,
 * when an administrator has refused a recovery from this lock.
 */
export async function askForReview(
  { database, newId }: { database: Connection; newId: NewId },
  {
    accountId,
    proofs,
    lockedAt,
    at,
  }: { accountId: string; proofs: readonly RecoveryProof[]; lockedAt: Date; at: Date },
): Promise<boolean> {
  const refused = await database.kysely
    .selectFrom('recovery_review')
    .select('id')
    .where('account_id', '=', accountId)
    .where('status', '=', 'blocked')
    .where('created_at', '>=', lockedAt)
    .executeTakeFirst()
  if (refused !== undefined)
    throw new Failure('account_locked', 'An administrator has refused to unlock the account.', {
      isCommitted: true,
      hint: 'Recovery cannot undo this lock. Contact the operator of this deployment.',
    })
  const asked = await database.kysely
    .insertInto('recovery_review')
    .values({
      id: newId('rev', at),
      account_id: accountId,
      proofs: [...proofs],
      status: 'open',
      created_at: at,
    })
    // The id is new, so the conflict is with the open review: a parameter in the index's predicate would not find it.
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .executeTakeFirst()
  return asked !== undefined
}

/** Lists recoveries, newest first: one more than the page's limit. */
export async function listRecoveryReviews(
  { kysely }: Connection,
  { status, page }: { status: RecoveryReview['status']; page: Page },
): Promise<readonly RecoveryReview[]> {
  const query = kysely.selectFrom('recovery_review').selectAll().where('status', '=', status)
  const rows = await (page.after === null ? query : query.where('id', '<', page.after))
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
    .execute()
  return rows.map((row) => ({
    id: row.id,
    accountId: row.account_id,
    proofs: z.array(recoveryProof).parse(row.proofs),
    status: row.status,
    createdAt: row.created_at,
    decidedBy: row.decided_by,
    decidedAt: row.decided_at,
    reason: row.reason,
  }))
}

interface Decision {
  readonly decidedBy: string
  readonly reason: string
  readonly at: Date
}

/**
 * Decides on a recovery, permanently. A released one unlocks the account, as a recovery does, and opens no session.
 * @returns the account; undefined if there is no such recovery. @throws Failure `conflict` when it was decided before, or
 * the account is the administrator's.
 */
export async function decideRecoveryReview(
  database: Connection,
  { id, status, ...decision }: Decision & { id: string; status: 'released' | 'blocked' },
): Promise<string | undefined> {
  const named = await database.kysely
    .selectFrom('recovery_review')
    .select('account_id')
    .where('id', '=', id)
    .executeTakeFirst()
  if (named === undefined) return undefined
  const accountId = named.account_id
  if (accountId === decision.decidedBy)
    throw new Failure('conflict', 'Administrators cannot decide on the recovery of their own account.', {
      hint: 'Let another administrator decide.',
    })
  await lockForRecovery(database, accountId)
  if (!(await closeReview(database, { accountId, id, status, ...decision })))
    throw new Failure('conflict', 'The review was already decided.', {
      hint: 'GET /api/admin/reviews lists the open reviews.',
    })
  if (status === 'released') await unlockRecovered(database, { accountId, at: decision.at })
  return accountId
}

/** Closes the recovery that waits for an account, if one does, because an administrator has unlocked it. */
export async function releaseWaiting(
  database: Connection,
  { accountId, ...decision }: Decision & { accountId: string },
): Promise<void> {
  await closeReview(database, { accountId, status: 'released', ...decision })
}

/** @returns false if none was open. */
async function closeReview(
  { kysely }: Connection,
  {
    accountId,
    id,
    status,
    decidedBy,
    reason,
    at,
  }: Decision & { accountId: string; id?: string; status: 'released' | 'blocked' },
): Promise<boolean> {
  const open = kysely
    .updateTable('recovery_review')
    .set({ status, decided_by: decidedBy, reason, decided_at: at })
    .where('account_id', '=', accountId)
    .where('status', '=', 'open')
  const { numUpdatedRows } = await (id === undefined
    ? open
    : open.where('id', '=', id)
  ).executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}
