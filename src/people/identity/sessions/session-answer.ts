/** Opens sessions after sign-in, and builds their responses. */
import { z } from 'zod'
import type { NewId } from '../../../core/base/ids.ts'
import { type Account, memberRoles, type Person, type Session } from '../../../core/base/principal.ts'
import type { Connection } from '../../../storage/database.ts'
import { findRole, type RoleSettings, requireUnlocked } from '../accounts.ts'
import { findSession, findStanding } from '../store.ts'
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
  account: accountView.describe(
    'Account that the person acts for, with the name and second factor of the person.',
  ),
  personId: z.string().describe('The person: `acct_…`, their own account.'),
  role: z.enum(memberRoles).describe('What the person may do in the account.'),
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
  { account, person, session, at }: { account: Account; person: Person; session: Session; at: Date },
): Promise<z.input<typeof unchangedSessionAnswer>> {
  if (session.tokenHolder === 'browser')
    return {
      ...viewStanding(account, person),
      sessionToken: null,
      expiresAt: session.tokenExpiresAt.toISOString(),
    }
  const { sessionToken, expiresAt } = await renewToken(settings, { person, session, at })
  return { ...viewStanding(account, person), sessionToken, expiresAt: expiresAt.toISOString() }
}

function viewStanding(account: Account, { id: personId, role }: Person) {
  return { account: viewAccount(account), personId, role }
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
  const { account, person, expiresAt: endsAt } = found
  requireUnlocked(person)
  requireUnlocked(account)
  const issued = await issueDeviceToken(settings, { accountId: person.id, sessionId, endsAt, at })
  return {
    ...viewStanding({ ...account, role: findRole({ ...account, id: person.id }, settings) }, person),
    sessionToken: issued.sessionToken,
    expiresAt: issued.expiresAt.toISOString(),
  }
}

/** Opens a session for an authenticated person. @param account their own account. @throws Failure `account_locked`. */
export async function signIn(
  parts: { database: Connection; newId: NewId; settings: TokenSettings & RoleSettings },
  { account: own, method, at }: { account: Account; method: SessionMethod; at: Date },
): Promise<SignedInAnswer> {
  const { account, person } = await findStanding(parts.database, own.id)
  requireUnlocked(person)
  requireUnlocked(account)
  const seconds = sessionSeconds(account, parts.settings)
  const { sessionToken, expiresAt } = await openSession(parts, {
    accountId: person.id,
    method,
    seconds,
    at,
  })
  const role = findRole({ ...account, id: person.id }, parts.settings)
  return {
    ...viewStanding({ ...account, role }, person),
    sessionToken,
    expiresAt: expiresAt.toISOString(),
  }
}
