/**
 * Signs in with passkeys. Passkeys are discoverable and verify their user; they are bound to the configured relying
 * party and our own origins. @see https://www.w3.org/TR/webauthn-3/#sctn-verifying-assertion
 */

import type { NewId } from '../../../core/base/ids.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Connection } from '../../../storage/database.ts'
import { openChallenge, takeChallenge } from '../challenges.ts'
import { isSignInChallenge, newSignInChallenge } from './passkey-challenge.ts'
import { type AuthenticationResponse, readChallenge } from './passkey-response.ts'
import { findPasskey, type Passkey, recordUse } from './passkey-store.ts'

/** Lifetime of a challenge: 5 minutes. */
export const CHALLENGE_SECONDS = 5 * 60

/** @property rpId registrable domain. @property webOrigins origins that may use the passkeys. */
export interface RelyingParty {
  readonly rpId: string
  readonly webOrigins: readonly string[]
}

/** An open challenge, with the JSON options for `navigator.credentials`. */
export interface PasskeyChallenge {
  readonly challengeId: string
  readonly publicKey: Record<string, unknown>
}

/** Loaded on first use, because the library takes a quarter of a second to load. */
export const webauthn = () => import('@simplewebauthn/server')

/** The WebAuthn user handle: the account id as base64url. */
function encodeUserHandle(accountId: string): string {
  return Buffer.from(accountId).toString('base64url')
}

/** Creates a sign-in challenge for any registered passkey. */
export async function loginOptions(
  parts: { database: Connection; newId: NewId; settings: RelyingParty },
  at: Date,
): Promise<PasskeyChallenge> {
  const { generateAuthenticationOptions } = await webauthn()
  const options = await generateAuthenticationOptions({
    rpID: parts.settings.rpId,
    challenge: newSignInChallenge(),
    userVerification: 'required',
    allowCredentials: [],
    timeout: CHALLENGE_SECONDS * 1000,
  })
  const { id } = await openChallenge(parts, {
    kind: 'passkey_login',
    subject: options.challenge,
    accountId: null,
    facts: {},
    at,
    seconds: CHALLENGE_SECONDS,
  })
  return { challengeId: id, publicKey: { ...options } }
}

/**
 * Authenticates an assertion for a challenge of {@link loginOptions}, which is consumed in any case.
 * @throws Failure `unauthenticated`, committed, the same for every cause.
 */
export async function assertPasskey(
  { database, settings }: { database: Connection; settings: RelyingParty },
  {
    credential,
    challengeId,
    now,
  }: { credential: AuthenticationResponse; challengeId?: string | undefined; now: Date },
): Promise<{ accountId: string }> {
  const subject = readChallenge(credential.response.clientDataJSON)
  if (subject === undefined || !isSignInChallenge(subject)) throw notAccepted()
  const challenge = await takeChallenge(database, { kind: 'passkey_login', by: { subject }, now })
  if (challenge === undefined || (challengeId ?? challenge.id) !== challenge.id) throw notAccepted()
  const passkey = await findPasskey(database, credential.id)
  if (passkey === undefined) throw notAccepted()
  const { userHandle } = credential.response
  if (typeof userHandle === 'string' && userHandle !== encodeUserHandle(passkey.accountId))
    throw notAccepted()
  const { counter, backedUp } = await verifyAssertion(settings, { credential, passkey, subject })
  if (!(await recordUse(database, { id: passkey.id, counter, backedUp, at: now }))) throw notAccepted()
  return { accountId: passkey.accountId }
}

export async function countPasskeys(database: Connection, accountId: string): Promise<number> {
  const { passkeys } = await database.kysely
    .selectFrom('passkey')
    .select(({ fn }) => fn.countAll<bigint>().as('passkeys'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  return Number(passkeys)
}

/** Verifies an assertion with a passkey. @param subject its challenge, base64url. @throws Failure `unauthenticated`. */
export async function verifyAssertion(
  { rpId, webOrigins }: RelyingParty,
  { credential, passkey, subject }: { credential: AuthenticationResponse; passkey: Passkey; subject: string },
): Promise<{ counter: number; backedUp: boolean }> {
  const { verifyAuthenticationResponse } = await webauthn()
  const { clientDataJSON, authenticatorData, signature } = credential.response
  const { verified, authenticationInfo } = await verifyAuthenticationResponse({
    response: {
      id: credential.id,
      rawId: credential.rawId,
      type: credential.type,
      clientExtensionResults: {},
      response: { clientDataJSON, authenticatorData, signature },
    },
    expectedChallenge: subject,
    expectedOrigin: [...webOrigins],
    expectedRPID: rpId,
    credential: {
      id: passkey.credentialId,
      publicKey: new Uint8Array(passkey.publicKey),
      counter: passkey.counter,
    },
    requireUserVerification: true,
  }).catch((cause: unknown) => {
    throw notAccepted(cause)
  })
  if (!verified) throw notAccepted()
  return { counter: authenticationInfo.newCounter, backedUp: authenticationInfo.credentialBackedUp }
}

/** One failure for every cause, so that it does not reveal which accounts and passkeys exist. */
function notAccepted(cause?: unknown): Failure {
  return new Failure(
    'unauthenticated',
    'The passkey was not accepted.',
    {
      hint: 'Get a new challenge with POST /api/auth/webauthn {"action":"login"} and answer it once, within five minutes.',
      isCommitted: true,
    },
    { cause },
  )
}
