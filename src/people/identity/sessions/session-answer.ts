/** Opens sessions after sign-in, and builds their responses. */
import { z } from 'zod'
import type { NewId } from '../../../core/base/ids.ts'
import type { Account, Session } from '../../../core/base/principal.ts'
import type { Connection } from '../../../storage/database.ts'
import { findRole, type RoleSettings, requireUnlocked } from '../accounts.ts'
import { findSession } from '../store.ts'
import {
  issueDeviceToken,
  openSession,
  renewToken,
  type SessionMethod,
  sessionSeconds,
  type TokenSettings,
} from './sessions.ts'

export const accountView = z.strictObject({
  id: z.string().describe('`acct_…`'),
  role: z.enum(['user', 'admin']).describe('Role in this deployment.'),
  guest: z.boolean().describe('True for a demo account.'),
  displayName: z.string().describe('Display name of the person.'),
  kycLevel: z.string().describe('Level of identity verification.'),
  mfaEnrolled: z.boolean().describe('True if a second factor is active.'),
})
accountView.register(z.globalRegistry, { id: 'Account' })

/** Response of every sign-in. */
export const sessionAnswer = z.strictObject({
  account: accountView.describe('Signed-in account.'),
  sessionToken: z
    .string()
    .optional()
    .describe(
      'Token for "Authorization: Bearer …". Absent for browsers (a request with Sec-Fetch-Site): they receive it in an HttpOnly cookie only.',
    ),
  expiresAt: z.string().describe('Expiry of the token, ISO 8601 UTC; renewed while the session is used.'),
})
sessionAnswer.register(z.globalRegistry, { id: 'Session' })

/** A sign-in with its token. The transport removes the token for browsers. */
export type SignedInAnswer = z.input<typeof sessionAnswer> & { readonly sessionToken: string }

/** Response for a caller who keeps the current session. */
export const unchangedSessionAnswer = sessionAnswer.extend({
  sessionToken: z
    .string()
    .nullable()
    .optional()
    .describe(
      'New token of the same session. Null for cookie sessions, whose token scripts must not read; absent for other requests of browsers (with Sec-Fetch-Site), which receive it in an HttpOnly cookie only.',
    ),
})
unchangedSessionAnswer.register(z.globalRegistry, { id: 'ContinuedSession' })

/** Builds the response for a continued session. Cookie callers get no token, because page scripts could leak it. */
export async function continueSession(
  settings: TokenSettings & RoleSettings,
  { account, session, at }: { account: Account; session: Session; at: Date },
): Promise<z.input<typeof unchangedSessionAnswer>> {
  if (session.tokenHolder === 'browser')
    return {
      account: viewAccount(account),
      sessionToken: null,
      expiresAt: session.tokenExpiresAt.toISOString(),
    }
  const { sessionToken, expiresAt } = await renewToken(settings, { account, session, at })
  return { account: viewAccount(account), sessionToken, expiresAt: expiresAt.toISOString() }
}

export function viewAccount(account: Account): z.input<typeof accountView> {
  const { id, role, guest, displayName, kycLevel, mfaEnrolled } = account
  return { id, role, guest, displayName, kycLevel, mfaEnrolled }
}

/** Issues the token of a program's session. @returns null if the session has ended. @throws Failure `account_locked`. */
export async function collectSession(
  { database, settings }: { database: Connection; settings: TokenSettings & RoleSettings },
  { sessionId, at }: { sessionId: string; at: Date },
): Promise<z.input<typeof sessionAnswer> | null> {
  const found = await findSession(database, sessionId, at)
  if (found === undefined) return null
  const { account, expiresAt: endsAt } = found
  requireUnlocked(account)
  const issued = await issueDeviceToken(settings, { accountId: account.id, sessionId, endsAt, at })
  return {
    account: viewAccount({ ...account, role: findRole(account, settings) }),
    sessionToken: issued.sessionToken,
    expiresAt: issued.expiresAt.toISOString(),
  }
}

/** Opens a session for an authenticated account. @throws Failure `account_locked`. */
export async function signIn(
  parts: { database: Connection; newId: NewId; settings: TokenSettings & RoleSettings },
  { account, method, at }: { account: Account; method: SessionMethod; at: Date },
): Promise<SignedInAnswer> {
  requireUnlocked(account)
  const seconds = sessionSeconds(account, parts.settings)
  const { sessionToken, expiresAt } = await openSession(parts, {
    accountId: account.id,
    method,
    seconds,
    at,
  })
  const role = findRole(account, parts.settings)
  return { account: viewAccount({ ...account, role }), sessionToken, expiresAt: expiresAt.toISOString() }
}
