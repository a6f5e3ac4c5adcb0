/** The end of every way in: a session, and how it is told. */
import { z } from 'zod'
import type { NewId } from '../../base/ids.ts'
import type { Account, Session } from '../../base/principal.ts'
import type { Connection } from '../../storage/database.ts'
import { type RoleSettings, requireUnlocked, roleOf } from '../accounts.ts'
import { openSession, renewToken, type SessionMethod, type TokenSettings } from './sessions.ts'

/** The account as its owner sees it. */
const accountView = z.strictObject({
  id: z.string().describe('`acct_…`'),
  role: z.enum(['user', 'admin']).describe('What the person is to this deployment.'),
  guest: z.boolean().describe('Whether this is a demo account.'),
  displayName: z.string().describe('What to call the person.'),
  kycLevel: z.string().describe('Level of identity verification.'),
  mfaEnrolled: z.boolean().describe('Whether a second factor is active.'),
})

/** The answer of every sign-in. */
export const sessionAnswer = z.strictObject({
  account: accountView.describe('Who is signed in.'),
  sessionToken: z
    .string()
    .describe('Send it as "Authorization: Bearer …"; browsers get the same as a cookie.'),
  expiresAt: z.string().describe('When the token ends, ISO 8601 UTC; it is renewed while it is used.'),
})

/** The answer to somebody who stays on the session that they came with. */
export const unchangedSessionAnswer = sessionAnswer.extend({
  sessionToken: sessionAnswer.shape.sessionToken
    .nullable()
    .describe('A fresh token of the same session; null for a browser, whose cookie scripts cannot read.'),
})

/** The session that goes on. A caller by cookie gets no token: what runs in a page could take it elsewhere. */
export async function staySignedIn(
  settings: TokenSettings,
  { account, session, at }: { account: Account; session: Session; at: Date },
): Promise<z.input<typeof unchangedSessionAnswer>> {
  if (session.tokenHolder === 'browser')
    return { account: viewOf(account), sessionToken: null, expiresAt: session.tokenExpiresAt.toISOString() }
  const { sessionToken, expiresAt } = await renewToken(settings, { account, session, at })
  return { account: viewOf(account), sessionToken, expiresAt: expiresAt.toISOString() }
}

/** {@link accountView} of an account. */
function viewOf(account: Account): z.input<typeof accountView> {
  const { id, role, guest, displayName, kycLevel, mfaEnrolled } = account
  return { id, role, guest, displayName, kycLevel, mfaEnrolled }
}

/** Opens a session for an account that has just shown who it is. @throws Failure `account_locked`. */
export async function signIn(
  parts: { database: Connection; newId: NewId; settings: TokenSettings & RoleSettings },
  { account, method, at }: { account: Account; method: SessionMethod; at: Date },
): Promise<z.input<typeof sessionAnswer>> {
  requireUnlocked(account)
  const { sessionToken, expiresAt } = await openSession(parts, { accountId: account.id, method, at })
  const role = roleOf(account, parts.settings)
  return { account: viewOf({ ...account, role }), sessionToken, expiresAt: expiresAt.toISOString() }
}
