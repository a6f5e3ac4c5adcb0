/** Recovery of locked or compromised accounts, by a code and, if registered, a passkey. */
import type { NewId } from '../../core/base/ids.ts'
import { keyedHash } from '../../core/base/seal.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Connection } from '../../storage/database.ts'
import type { RoleSettings } from './accounts.ts'
import type { Asker } from './codes/asker.ts'
import type { Destination } from './codes/destinations.ts'
import { findOwnerId, hasSignInAddress } from './codes/login-destinations.ts'
import {
  type CodeSettings,
  codeRefused,
  consumeCode,
  type OpenCode,
  openCode,
  verifyCode,
} from './codes/one-time-codes.ts'
import { lockForRecovery, unlockPerson, unlockRecovered, unlockShared } from './locks.ts'
import { findMembership, type Membership } from './members/memberships.ts'
import type { AuthenticationResponse } from './passkeys/passkey-response.ts'
import { countPasskeys, type RelyingParty } from './passkeys/passkeys.ts'
import { askForReview, type RecoveryProof } from './recovery-reviews.ts'
import { type SignedInAnswer, signIn } from './sessions/session-answer.ts'
import type { TokenSettings } from './sessions/sessions.ts'
import { findAccount } from './store.ts'

export interface RecoveryPasskeys {
  readonly loginOptions: (
    parts: { database: Connection; newId: NewId; settings: RelyingParty },
    at: Date,
  ) => Promise<{ publicKey: Record<string, unknown> }>
  /** @throws Failure `unauthenticated`, committed. */
  readonly assertPasskey: (
    parts: { database: Connection; settings: RelyingParty },
    shown: { credential: AuthenticationResponse; challengeId?: string; now: Date },
  ) => Promise<{ accountId: string }>
  readonly countPasskeys: (database: Connection, accountId: string) => Promise<number>
}

/**
 * Creates a recovery code and passkey options, whether or not the destination has an account. Call it in a
 * transaction. @param open the asker's open code, which stays the code.
 */
export async function startRecovery(
  parts: {
    database: Connection
    newId: NewId
    settings: CodeSettings & RelyingParty
    passkeys: Pick<RecoveryPasskeys, 'loginOptions'>
  },
  {
    destination,
    asker,
    open,
    at,
  }: { destination: Destination; asker: Asker; open: OpenCode | null; at: Date },
): Promise<OpenCode & { publicKey: Record<string, unknown> }> {
  const opened = open ?? (await openCode(parts, { kind: 'recovery', destination, asker, at }))
  const { publicKey } = await parts.passkeys.loginOptions(parts, at)
  return { ...opened, publicKey }
}

/** `review`: an administrator locked the account and decides; nothing of it has changed. @property isNew it waits since now. */
export type Recovery =
  | { readonly status: 'recovered'; readonly session: SignedInAnswer }
  | { readonly status: 'review'; readonly accountId: string; readonly isNew: boolean }

/**
 * Recovers an account: unlocks it, pauses its keys, revokes all its sessions and opens a new one; or asks an administrator
 * who locked it. @param credential passkey assertion; required if the account has a passkey. @throws Failure
 * `unauthenticated`, `account_locked` when an administrator has refused, `step_up_required` when the assertion is missing;
 * the code stays valid then.
 */
export async function completeRecovery(
  parts: {
    database: Connection
    newId: NewId
    settings: CodeSettings & RelyingParty & TokenSettings & RoleSettings
    passkeys: Pick<RecoveryPasskeys, 'assertPasskey' | 'countPasskeys'>
  },
  {
    challengeId,
    code,
    credential,
    now,
  }: { challengeId: string; code: string; credential: AuthenticationResponse | undefined; now: Date },
): Promise<Recovery> {
  const { database, passkeys } = parts
  const proven = await verifyCode(parts, { kind: 'recovery', challengeId, code, now })
  const accountId = proven.accountId ?? (await findOwnerId(database, proven.hash))
  if (accountId === undefined) throw codeRefused()
  const proofs: RecoveryProof[] = [proven.accountId === null ? 'code' : 'guest']
  if ((await passkeys.countPasskeys(database, accountId)) > 0) {
    if (credential === undefined) throw assertionMissing()
    const asserted = await passkeys.assertPasskey(parts, { credential, now })
    if (asserted.accountId !== accountId) throw codeRefused()
    proofs.push('passkey')
  }
  await consumeCode(database, { kind: 'recovery', challengeId, now })
  return recoverProven(parts, { accountId, proofs, at: now })
}

async function recoverProven(
  parts: { database: Connection; newId: NewId; settings: TokenSettings & RoleSettings },
  { accountId, proofs, at }: { accountId: string; proofs: readonly RecoveryProof[]; at: Date },
): Promise<Recovery> {
  const { database } = parts
  const member = await findMembership(database, accountId)
  if (member !== undefined) return recoverMember(parts, { member, proofs, at })
  const lockedAt = await lockForRecovery(database, accountId)
  if (lockedAt !== null) {
    const isNew = await askForReview(parts, { accountId, proofs, lockedAt, at })
    return { status: 'review', accountId, isNew }
  }
  await unlockRecovered(database, { accountId, at })
  const account = await findAccount(database, accountId)
  if (account === undefined) throw new Error(`a proven account does not exist: ${accountId}`)
  return { status: 'recovered', session: await signIn(parts, { account, method: 'recovery', at }) }
}

/** Recovers one of several people: their own access, and for an owner the account, whose keys an intruder may have created. */
async function recoverMember(
  parts: { database: Connection; newId: NewId; settings: TokenSettings & RoleSettings },
  {
    member: { personId, accountId, role },
    proofs,
    at,
  }: { member: Membership; proofs: readonly RecoveryProof[]; at: Date },
): Promise<Recovery> {
  const { database } = parts
  if (role === 'owner') {
    const lockedAt = await lockForRecovery(database, accountId)
    if (lockedAt !== null) {
      const isNew = await askForReview(parts, { accountId, proofs, lockedAt, at })
      await unlockPerson(database, { personId, at })
      return { status: 'review', accountId, isNew }
    }
    await unlockShared(database, { accountId, at })
  }
  await unlockPerson(database, { personId, at })
  const account = await findAccount(database, personId)
  if (account === undefined) throw new Error(`a proven account does not exist: ${personId}`)
  return { status: 'recovered', session: await signIn(parts, { account, method: 'recovery', at }) }
}

/** Creates a recovery code for a sandbox guest without address and passkey. The code works only for a locked guest. */
export async function startGuestRecovery(
  parts: { database: Connection; newId: NewId; settings: CodeSettings },
  { guestId, asker, at }: { guestId: string; asker: Pick<Asker, 'id'>; at: Date },
): Promise<OpenCode> {
  const account = await findAccount(parts.database, guestId)
  const isStuck =
    account?.guest === true &&
    account.status === 'locked' &&
    !(await hasSignInAddress(parts.database, guestId)) &&
    (await countPasskeys(parts.database, guestId)) === 0
  const destination: Destination = {
    channel: 'email',
    address: guestId,
    hash: keyedHash(parts.settings.dataKey, 'destination', `guest:${guestId}`),
    callingCode: null,
    masked: 'Guest',
  }
  return openCode(parts, { kind: 'recovery', destination, asker, accountId: isStuck ? guestId : null, at })
}

/**
 * Recovers an account without an address by passkey alone: the passkey combines the device with the owner's
 * biometrics or PIN. @throws Failure `unauthenticated`, `account_locked` when an administrator has refused,
 * `step_up_required` when the account has an address.
 */
export async function recoverByPasskey(
  parts: {
    database: Connection
    newId: NewId
    settings: RelyingParty & TokenSettings & RoleSettings
    passkeys: Pick<RecoveryPasskeys, 'assertPasskey'>
  },
  { challengeId, credential, now }: { challengeId: string; credential: AuthenticationResponse; now: Date },
): Promise<Recovery> {
  const { database, passkeys } = parts
  const { accountId } = await passkeys.assertPasskey(parts, { credential, challengeId, now })
  if (await hasSignInAddress(database, accountId))
    throw new Failure('step_up_required', 'This account has an address: a code sent to it is required too.', {
      isCommitted: true,
      hint: 'POST /api/auth/recovery/start with its channel and destination, then complete with code and credential.',
    })
  return recoverProven(parts, { accountId, proofs: ['passkey'], at: now })
}

function assertionMissing(): Failure {
  return new Failure('step_up_required', 'This account has a passkey: its assertion is required too.', {
    isCommitted: true,
    hint: 'Get an assertion with the "publicKey" of POST /api/auth/recovery/start and send it as "credential" with the same code.',
  })
}
