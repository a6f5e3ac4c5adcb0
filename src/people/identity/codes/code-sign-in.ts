/** Signs in with a one-time code, to the destination's account or a new one. */
import type { z } from 'zod'
import type { NewId } from '../../../core/base/ids.ts'
import type { Account, Person, Session } from '../../../core/base/principal.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Channel } from '../../../providers/messages/port.ts'
import type { Connection } from '../../../storage/database.ts'
import { createAccount, type RoleSettings } from '../accounts.ts'
import { type NoticeParts, sendSecurityNotice } from '../security-notices.ts'
import {
  continueSession,
  type sessionAnswer,
  signIn,
  type unchangedSessionAnswer,
} from '../sessions/session-answer.ts'
import type { TokenSettings } from '../sessions/sessions.ts'
import { claimDestination, findOwner, findOwnerId } from './login-destinations.ts'
import { type CodeSettings, consumeCode, type VerifiedDestination, verifyCode } from './one-time-codes.ts'

interface Parts {
  readonly database: Connection
  readonly newId: NewId
  readonly settings: CodeSettings & TokenSettings & RoleSettings
}

interface ShownCode {
  readonly challengeId: string
  readonly code: string
  readonly now: Date
}

/**
 * Signs in the owner of a destination, creating an account for a new destination. @param furnish sets up a new
 * account. @throws Failure `unauthenticated`, `account_locked`; `conflict` when the destination was claimed
 * concurrently.
 */
export async function signInByCode(
  parts: Parts & { furnish: (accountId: string) => Promise<unknown> },
  shown: ShownCode,
): Promise<z.input<typeof sessionAnswer>> {
  const proven = await redeemCode(parts, shown)
  const { now: at } = shown
  const account = (await findOwner(parts.database, proven.hash)) ?? (await openAccount(parts, proven, at))
  return signIn(parts, { account, method: proven.channel, at })
}

/**
 * Adds a destination to the signed-in account, on explicit request only: otherwise a session planted in a victim's
 * browser would capture their address. The session continues with its second factor.
 * @throws Failure `unauthenticated`, `conflict` when the destination belongs to another account, or the account is a guest's.
 */
export async function linkByCode(
  parts: Parts & NoticeParts & { recordAdded: (channel: Channel) => Promise<void> },
  { account, person, session, ...shown }: ShownCode & { account: Account; person: Person; session: Session },
): Promise<z.input<typeof unchangedSessionAnswer>> {
  if (account.guest)
    throw new Failure('conflict', 'A guest account cannot have sign-in addresses.', {
      hint: 'Send the same code without "link" to create an account.',
    })
  const proven = await redeemCode(parts, shown)
  const { now: at } = shown
  const isNew = await claimDestination(parts.database, { ...proven, accountId: person.id, at })
  if (isNew) {
    await sendSecurityNotice(parts, { accountId: person.id, notice: 'address_added', at })
    await parts.recordAdded(proven.channel)
  } else if ((await findOwnerId(parts.database, proven.hash)) !== person.id)
    throw new Failure('conflict', 'This destination belongs to another account.', {
      hint: 'Send the same code without "link" to sign in to that account.',
    })
  return continueSession(parts.settings, { account, person, session, at })
}

async function redeemCode(
  { database, settings }: Parts,
  { challengeId, code, now }: ShownCode,
): Promise<VerifiedDestination> {
  const proven = await verifyCode({ database, settings }, { kind: 'otp', challengeId, code, now })
  await consumeCode(database, { kind: 'otp', challengeId, now })
  return proven
}

async function openAccount(
  { furnish, ...parts }: Parts & { furnish: (accountId: string) => Promise<unknown> },
  proven: VerifiedDestination,
  at: Date,
): Promise<Account> {
  const account = await createAccount(parts, { displayName: proven.masked, guest: false, at })
  const isOurs = await claimDestination(parts.database, { ...proven, accountId: account.id, at })
  if (!isOurs)
    throw new Failure('conflict', 'This destination was just claimed by another account.', {
      hint: 'Send the same code again to sign in to that account.',
    })
  await furnish(account.id)
  return account
}
