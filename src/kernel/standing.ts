/**
 * Whether a caller still stands. A credential is read when its request arrives; where many wait for the database, the account
 * may be locked and recovered before the request has its turn.
 */

import type { Principal } from '../base/principal.ts'
import { Failure } from '../failures/failure.ts'
import type { Connection } from '../storage/database.ts'
import { requireUnpaused } from './gates/scope.ts'

/**
 * Reads what the caller stands on again. Behind a row that refers to the account, or behind the journal's lock, nobody recovers
 * the account before the transaction's end. Sessions and keys are never deleted: what was not ended still stands.
 * @throws Failure `unauthenticated`, `unknown_key`, `account_locked`; `insufficient_scope` for a key that was paused.
 */
export async function requireStanding(database: Connection, principal: Principal): Promise<void> {
  if (principal.kind === 'public') return
  const { kysely } = database
  const account = kysely.selectFrom('account').where('account.id', '=', principal.account.id)
  if (principal.kind === 'session') {
    const found = await account
      .leftJoin('session', (join) => join.on('session.id', '=', principal.session.id))
      .select(['account.status', 'session.revoked_at'])
      .executeTakeFirst()
    requireActive(found?.status)
    if (found?.revoked_at instanceof Date)
      throw new Failure('unauthenticated', 'The session has ended.', {
        hint: 'Sign in again; GET /sign-in shows every way in.',
      })
    return
  }
  const found = await account
    .leftJoin('access_key', (join) => join.on('access_key.id', '=', principal.key.id))
    .select(['account.status', 'access_key.status as keyStatus'])
    .executeTakeFirst()
  requireActive(found?.status)
  if (found?.keyStatus === 'revoked')
    throw new Failure('unknown_key', 'The key was revoked.', { hint: 'Its owner can make another one.' })
  if (found?.keyStatus === 'paused')
    requireUnpaused({ ...principal, key: { ...principal.key, status: found.keyStatus } })
}

function requireActive(status: 'active' | 'locked' | undefined): void {
  if (status === 'locked')
    throw new Failure('account_locked', 'The account is locked.', {
      hint: 'Unlock it through POST /api/auth/recovery/start.',
    })
}
