/**
 * Registers passkeys for new and existing accounts.
 * @see https://www.w3.org/TR/webauthn-3/#sctn-registering-a-new-credential
 */
import { z } from 'zod'
import type { NewId } from '../../../core/base/ids.ts'
import type { Account } from '../../../core/base/principal.ts'
import { random } from '../../../core/base/random.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Connection } from '../../../storage/database.ts'
import { createAccount, settleGuest } from '../accounts.ts'
import { type Challenge, openChallenge, takeChallenge } from '../challenges.ts'
import { GUEST_NAME } from '../display-name.ts'
import { endGuestLifetime } from '../sessions/sessions.ts'
import { decodePoint, type P256Point } from './passkey-point.ts'
import { type RegistrationResponse, readChallenge } from './passkey-response.ts'
import { findPasskey, findPasskeys, insertPasskey, type Passkey } from './passkey-store.ts'
import { CHALLENGE_SECONDS, type PasskeyChallenge, type RelyingParty, webauthn } from './passkeys.ts'

/**
 * ES256 first, because such a passkey can own a smart account; then Ed25519 and RS256, by COSE number.
 * @see https://www.iana.org/assignments/cose/cose.xhtml#algorithms
 */
const ALGORITHMS = [-7, -8, -257]

const CHALLENGE_BYTES = 32

/** Default display name. */
const DEFAULT_NAME = 'Person'

/** @property accountId existing account, or id for a new one. */
const registration = z.object({ accountId: z.string(), displayName: z.string() })

interface Parts {
  readonly database: Connection
  readonly newId: NewId
  readonly settings: RelyingParty
}

/** The name that an account has, or gets with its first passkey. */
function chooseName(account: Account | null, given: string | undefined): string {
  if (account !== null && !account.guest) return account.displayName
  const chosen = account === null || account.displayName === GUEST_NAME ? undefined : account.displayName
  return given ?? chosen ?? DEFAULT_NAME
}

/** Creates a registration challenge. @param account existing account; null for a new one. */
export async function registrationOptions(
  parts: Parts,
  { account, displayName, at }: { account: Account | null; displayName?: string | undefined; at: Date },
): Promise<PasskeyChallenge> {
  const { generateRegistrationOptions } = await webauthn()
  const known = account === null ? [] : await findPasskeys(parts.database, { accountId: account.id })
  const facts = {
    accountId: account?.id ?? parts.newId('acct', at),
    displayName: chooseName(account, displayName),
  }
  const options = await generateRegistrationOptions({
    rpName: 'Bursar',
    rpID: parts.settings.rpId,
    challenge: new Uint8Array(random.bytes(CHALLENGE_BYTES)),
    userName: facts.displayName,
    userDisplayName: facts.displayName,
    userID: new Uint8Array(Buffer.from(facts.accountId)),
    timeout: CHALLENGE_SECONDS * 1000,
    attestationType: 'none',
    excludeCredentials: known.map(({ credentialId, transports }) => ({
      id: credentialId,
      transports: [...transports],
    })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    supportedAlgorithmIDs: ALGORITHMS,
  })
  const { id } = await openChallenge(parts, {
    kind: 'passkey_register',
    subject: options.challenge,
    accountId: account?.id ?? null,
    facts,
    at,
    seconds: CHALLENGE_SECONDS,
  })
  return { challengeId: id, publicKey: { ...options } }
}

/**
 * Registers the passkey for a challenge of {@link registrationOptions}, which is consumed in any case. @param account
 * signed-in account; null creates a new one. A guest becomes a person, whose sessions go on. @returns the passkey, its account, and its point if it can own a smart
 * account. @throws Failure `unauthenticated` when the response is not valid, `conflict` when the credential is
 * already registered; writes are committed.
 */
export async function registerPasskey(
  parts: Parts,
  {
    credential,
    challengeId,
    account,
    displayName,
    at,
  }: {
    credential: RegistrationResponse
    challengeId: string | undefined
    account: Account | null
    displayName: string | undefined
    at: Date
  },
): Promise<{ account: Account; passkeyId: string; point: P256Point | null }> {
  const challenge = await takeRegistration(parts.database, { credential, challengeId, account, at })
  const made = await verify(parts.settings, { credential, subject: challenge.subject })
  if ((await findPasskey(parts.database, made.credentialId)) !== undefined) throw isRegistered(true)
  const facts = registration.parse(challenge.facts)
  const owner =
    account ??
    (await createAccount(parts, {
      id: facts.accountId,
      displayName: displayName ?? facts.displayName,
      guest: false,
      at,
    }))
  const passkey = { ...made, id: parts.newId('pk', at), accountId: owner.id, createdAt: at, lastUsedAt: null }
  // A concurrent registration won: roll back everything, especially a new account without a sign-in method.
  if (!(await insertPasskey(parts.database, passkey))) throw isRegistered(false)
  const person = owner.guest
    ? await settleGuest(parts.database, { account: owner, displayName: displayName ?? facts.displayName })
    : owner
  if (owner.guest) await endGuestLifetime(parts.database, { accountId: owner.id, at })
  return { account: person, passkeyId: passkey.id, point: await decodePoint(made.publicKey) }
}

/** Takes the challenge; only the account that it was opened for can finish it. */
async function takeRegistration(
  database: Connection,
  {
    credential,
    challengeId,
    account,
    at,
  }: {
    credential: RegistrationResponse
    challengeId: string | undefined
    account: Account | null
    at: Date
  },
): Promise<Challenge> {
  const subject = readChallenge(credential.response.clientDataJSON)
  if (subject === undefined) throw notRegistered()
  const challenge = await takeChallenge(database, { kind: 'passkey_register', by: { subject }, now: at })
  if (challenge === undefined || (challengeId ?? challenge.id) !== challenge.id) throw notRegistered()
  if (challenge.accountId !== (account?.id ?? null)) throw notRegistered()
  return challenge
}

async function verify(
  { rpId, webOrigins }: RelyingParty,
  { credential, subject }: { credential: RegistrationResponse; subject: string },
): Promise<
  Pick<Passkey, 'credentialId' | 'publicKey' | 'counter' | 'transports' | 'deviceType' | 'backedUp'>
> {
  const { verifyRegistrationResponse } = await webauthn()
  const { clientDataJSON, attestationObject, transports = [] } = credential.response
  if (await isCertified(attestationObject)) throw notRegistered()
  const { verified, registrationInfo } = await verifyRegistrationResponse({
    response: {
      id: credential.id,
      rawId: credential.rawId,
      type: credential.type,
      clientExtensionResults: {},
      response: { clientDataJSON, attestationObject },
    },
    expectedChallenge: subject,
    expectedOrigin: [...webOrigins],
    expectedRPID: rpId,
    requireUserVerification: true,
    supportedAlgorithmIDs: ALGORITHMS,
  }).catch((cause: unknown) => {
    throw notRegistered(cause)
  })
  if (!verified) throw notRegistered()
  const { credential: made, credentialDeviceType, credentialBackedUp } = registrationInfo
  return {
    credentialId: made.id,
    publicKey: made.publicKey,
    counter: made.counter,
    transports,
    deviceType: credentialDeviceType,
    backedUp: credentialBackedUp,
  }
}

/**
 * True if an attestation has certificates. None were requested, and the library would fetch the revocation lists they
 * name.
 */
async function isCertified(attestationObject: string): Promise<boolean> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers')
  try {
    const attestation = decodeAttestationObject(new Uint8Array(Buffer.from(attestationObject, 'base64url')))
    const format = attestation.get('fmt')
    return format !== 'none' && (format !== 'packed' || attestation.get('attStmt').get('x5c') !== undefined)
  } catch (cause) {
    throw notRegistered(cause)
  }
}

const hint =
  'Get a new challenge with POST /api/auth/webauthn {"action":"register"} and answer it once, within five minutes and in the same session.'

function notRegistered(cause?: unknown): Failure {
  const members = { hint, isCommitted: true }
  return new Failure('unauthenticated', 'The passkey was not registered.', members, { cause })
}

function isRegistered(isCommitted: boolean): Failure {
  return new Failure('conflict', 'This passkey is already registered.', {
    hint: 'Sign in with it: POST /api/auth/webauthn {"action":"login"}.',
    isCommitted,
  })
}
