/** In by a one-time code: to the account that the destination signs in, or to a new one. */
import type { z } from 'zod'
import type { NewId } from '../../base/ids.ts'
import type { Account, Session } from '../../base/principal.ts'
import { Failure } from '../../failures/failure.ts'
import type { Channel } from '../../providers/messages.ts'
import type { Connection } from '../../storage/database.ts'
import { createAccount, type RoleSettings } from '../accounts.ts'
import { type NoticeParts, noticeOwner } from '../security-notices.ts'
import {
  type sessionAnswer,
  signIn,
  staySignedIn,
  type unchangedSessionAnswer,
} from '../sessions/session-answer.ts'
import type { TokenSettings } from '../sessions/sessions.ts'
import { claimDestination, findOwner, findOwnerId } from './login-destinations.ts'
import { type CodeSettings, spendCode, tryCode, type VerifiedDestination } from './one-time-codes.ts'

/** What signing in needs. */
interface Parts {
  readonly database: Connection
  readonly newId: NewId
  readonly settings: CodeSettings & TokenSettings & RoleSettings
}

/** A code as its reader shows it. */
interface ShownCode {
  readonly challengeId: string
  readonly code: string
  readonly now: Date
}

/**
 * Signs in whoever reads a destination; where it is new, with a new account.
 * @param furnish gives a new account what every account has.
 * @throws Failure `unauthenticated`, `account_locked`; `conflict` where the destination was taken in this moment.
 */
export async function signInByCode(
  parts: Parts & { furnish: (accountId: string) => Promise<unknown> },
  shown: ShownCode,
): Promise<z.input<typeof sessionAnswer>> {
  const proven = await provenBy(parts, shown)
  const { now: at } = shown
  const account = (await findOwner(parts.database, proven.hash)) ?? (await openAccount(parts, proven, at))
  return signIn(parts, { account, method: proven.channel, at })
}

/**
 * Adds the destination to the account of somebody who is signed in and asked for it. A session alone never does: a session
 * that was planted in a stranger's browser would catch their address. The same session goes on, with its second factor.
 * @throws Failure `unauthenticated`, `conflict` where it belongs to another account, or the account is a guest's.
 */
export async function linkByCode(
  parts: Parts & NoticeParts & { recordAdded: (channel: Channel) => Promise<void> },
  { account, session, ...shown }: ShownCode & { account: Account; session: Session },
): Promise<z.input<typeof unchangedSessionAnswer>> {
  if (account.guest)
    throw new Failure('conflict', 'A guest account has no way to sign in again.', {
      hint: 'Send the same code without "link" to get an account of your own.',
    })
  const proven = await provenBy(parts, shown)
  const { now: at } = shown
  const isNew = await claimDestination(parts.database, { ...proven, accountId: account.id, at })
  if (isNew) {
    await noticeOwner(parts, { accountId: account.id, notice: 'address_added', at })
    await parts.recordAdded(proven.channel)
  } else if ((await findOwnerId(parts.database, proven.hash)) !== account.id)
    throw new Failure('conflict', 'This destination signs another account in.', {
      hint: 'Send the same code without "link" to sign that account in.',
    })
  return staySignedIn(parts.settings, { account, session, at })
}

async function provenBy(
  { database, settings }: Parts,
  { challengeId, code, now }: ShownCode,
): Promise<VerifiedDestination> {
  const proven = await tryCode({ database, settings }, { kind: 'otp', challengeId, code, now })
  await spendCode(database, { kind: 'otp', challengeId, now })
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
    throw new Failure('conflict', 'This destination was given to an account in this moment.', {
      hint: 'Send the same code again to sign that account in.',
    })
  await furnish(account.id)
  return account
}
