/**
 * Rechecks a caller's credential. It is read when the request arrives; while requests queue for the database, the
 * account may be locked or recovered.
 */

import { sql } from 'kysely'
import type { Principal } from '../core/base/principal.ts'
import { Failure } from '../core/failures/failure.ts'
import type { Connection } from '../storage/database.ts'
import { requireRole, requireUnpaused } from './gates/scope.ts'

/**
 * Reloads the caller's account and credential. After writing a row that references the account, or under the
 * journal's lock, no recovery can happen before the transaction ends. Sessions and keys are never deleted, so absence
 * of revocation is sufficient. @throws Failure `unauthenticated`, `unknown_key`, `account_locked`;
 * `insufficient_scope` for a paused key.
 */
export async function requireValidCredential(
  database: Connection,
  principal: Principal,
  { mayBePaused = false } = {},
): Promise<void> {
  if (principal.kind === 'public') return
  const { kysely } = database
  const account = kysely.selectFrom('account').where('account.id', '=', principal.account.id)
  if (principal.kind === 'session') {
    const found = await account
      .leftJoin('session', (join) => join.on('session.id', '=', principal.session.id))
      .leftJoin('membership', (join) => join.on('membership.person_id', '=', principal.person.id))
      .select(['account.status', 'session.revoked_at', 'membership.account_id', 'membership.role'])
      .select(['membership.locked_at', 'session.id as sessionId'])
      .executeTakeFirst()
    requireActive(found?.status)
    // A schedule is its account's: it has no session, and goes on without the person who made it.
    if (typeof found?.sessionId !== 'string') return
    requireActive(found.locked_at instanceof Date ? 'locked' : 'active')
    if (
      found.revoked_at instanceof Date ||
      (found.account_id ?? principal.person.id) !== principal.account.id
    )
      throw new Failure('unauthenticated', 'The session has expired or was revoked.', {
        hint: 'Sign in again; GET /sign-in lists the sign-in methods.',
      })
    // It may have been lowered while the request waited.
    requireRole({ person: { ...principal.person, role: found.role ?? 'owner' } }, principal.person.role)
    return
  }
  const found = await account
    .leftJoin('access_key', (join) => join.on('access_key.id', '=', principal.key.id))
    .select(['account.status', 'access_key.status as keyStatus'])
    .select(sql<boolean>`key_is_active(access_key.id)`.as('isActive'))
    .executeTakeFirst()
  requireActive(found?.status)
  if (found?.keyStatus === 'revoked')
    throw new Failure('unknown_key', 'The key was revoked.', { hint: 'Ask its owner to create a new one.' })
  if (found?.isActive === false && !mayBePaused)
    requireUnpaused({ ...principal, key: { ...principal.key, status: 'paused' } })
}

function requireActive(status: 'active' | 'locked' | undefined): void {
  if (status === 'locked')
    throw new Failure('account_locked', 'The account is locked.', {
      hint: 'Unlock it through POST /api/auth/recovery/start.',
    })
}
