/** Verifies agents' signed requests. @see https://www.rfc-editor.org/rfc/rfc9421 */
import type { KeyObject } from 'node:crypto'
import { isSignatureError, verifySignature } from 'http-message-sig'
import { LRUCache } from 'lru-cache'
import { listOriginNames, matchOriginName } from '../../../core/base/origins.ts'
import type { Account, Principal } from '../../../core/base/principal.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Connection } from '../../../storage/database.ts'
import { requireUnlocked } from '../accounts.ts'
import { authenticateKey, findKey } from '../store.ts'
import { fitsDigest } from './content-digest.ts'
import { delegationInvalid } from './delegation-chain.ts'
import { importPublicKey, verifyEd25519 } from './ed25519.ts'
import { type OfflineDependencies, presentChain } from './offline-delegations.ts'
import { COMPONENTS, MAX_SIGNATURE_SECONDS, OPTIONAL_COMPONENTS, TAG } from './sign-request.ts'
import { computeThumbprint } from './thumbprint.ts'

/** A raw request: the unmodified target and all header lines, in order. */
export interface RawRequest {
  readonly method: string
  /** Path and query exactly as on the request line. */
  readonly target: string
  readonly fields: readonly { readonly name: string; readonly value: string }[]
  readonly body: Uint8Array
}

/** Tolerance for client clocks. */
const SKEW_SECONDS = 30
/** Retention of a nonce after its signature's expiry; far longer than any request takes. */
const NONCE_MARGIN_SECONDS = 600
/** Fits 16 random bytes in any common text encoding. */
const MIN_NONCE_LENGTH = 16
const MAX_NONCE_LENGTH = 256

/** Public keys by thumbprint, their own hash, so that they are never stale. The key's state is read for every request. */
const publicKeys = new LRUCache<string, KeyObject>({ max: 10_000 })

/** @throws Failure `unknown_key`. */
async function findPublicKey(database: Connection, thumbprint: string): Promise<KeyObject> {
  const cached = publicKeys.get(thumbprint)
  if (cached !== undefined) return cached
  const x = (await findKey(database, { thumbprint }))?.key.publicKey
  if (x === undefined || x === null || computeThumbprint(x) !== thumbprint) throw unknownKey()
  const known = importPublicKey(x)
  publicKeys.set(thumbprint, known)
  return known
}

/** Finds the key that a signature names. @throws Failure. */
type FindKey = (keyId: string) => Promise<KeyObject>

/**
 * Authenticates a signed request: digest, signature, times and nonce. The nonce is consumed last. Keys of a chain of delegations
 * that comes with the request are made before it. `@authority` must be one of the origin's names, whatever the Host header says.
 * @throws Failure `digest_mismatch`, `unknown_key`, `signature_invalid`, `signature_expired`, `signature_replayed`, `account_locked`;
 * with a chain also `delegation_invalid`, `conflict`, `insufficient_scope`, `policy_denied`.
 */
export async function authenticateSignature(
  dependencies: OfflineDependencies,
  request: RawRequest,
  now: Date,
): Promise<Principal> {
  const { database, origin } = dependencies
  const digest = findHeader(request, 'content-digest')
  if (digest !== undefined && !fitsDigest(digest, request.body))
    throw new Failure('digest_mismatch', 'The body does not match its Content-Digest.', {
      hint: 'Compute Content-Digest (sha-256 or sha-512) over exactly the bytes that are sent.',
    })
  const field = findHeader(request, 'bursar-delegation')
  const chain = field === undefined ? undefined : presentChain(dependencies, field, now)
  const findSigner: FindKey = chain?.findKey ?? ((keyId) => findPublicKey(database, keyId))
  const { expires, nonce, thumbprint, ...times } = await verifyByAnyName(findSigner, origin, request)
  requireCurrent({ expires, ...times }, now)
  await chain?.settle()
  const nonceExpiresAt = new Date((expires + NONCE_MARGIN_SECONDS) * 1000)
  const found = await authenticateKey(database, { thumbprint, nonce, nonceExpiresAt }, now)
  const isExpired = found !== undefined && found.key.expiresAt !== null && found.key.expiresAt <= now
  if (chain !== undefined) requireGiven(found, isExpired)
  if (found === undefined || isExpired) throw unknownKey()
  requireUnlocked(found.account)
  if (!found.isNonceNew)
    throw new Failure('signature_replayed', 'This signature was already used.', {
      hint: 'Sign every request with a new nonce.',
    })
  return {
    kind: 'key',
    account: found.account,
    key: found.key,
    nonce: { value: nonce, expiresAt: nonceExpiresAt },
  }
}

/** @throws Failure `delegation_invalid` where a key of the chain has ended since the chain was first used. */
function requireGiven(found: { readonly account: Account } | undefined, isExpired: boolean): void {
  if (found === undefined) throw delegationInvalid('revoked', null, 'has a revoked key')
  if (isExpired) throw delegationInvalid('expired', null, 'has ended')
  if (found.account.status === 'locked')
    throw delegationInvalid('unknown_parent', 0, 'is of a key that is not registered here')
}

interface SignatureTimes {
  readonly created: number
  readonly expires: number
}

/** A verified signature. @property thumbprint names the key that made it. */
interface VerifiedSignature extends SignatureTimes {
  readonly nonce: string
  readonly thumbprint: string
}

/** Verifies with the origin name of the Host header first, then with its aliases. */
async function verifyByAnyName(
  findSigner: FindKey,
  origin: string,
  request: RawRequest,
): Promise<VerifiedSignature> {
  const used = matchOriginName(origin, findHeader(request, 'host'))
  const others = listOriginNames(origin).filter((name) => name !== used)
  try {
    return await verifyMessage(findSigner, used, request)
  } catch (error) {
    for (const name of others) {
      const verified = await verifyMessage(findSigner, name, request).catch(() => undefined)
      if (verified !== undefined) return verified
    }
    throw error
  }
}

async function verifyMessage(
  findSigner: FindKey,
  origin: string,
  request: RawRequest,
): Promise<VerifiedSignature> {
  let thumbprint: string | undefined
  try {
    const { parameters } = await verifySignature(
      {
        kind: 'request',
        method: request.method,
        targetUri: `${origin}${request.target}`,
        fields: request.fields,
      },
      {
        policy: {
          algorithms: ['ed25519'],
          requiredComponents: requiredComponents(request),
          requiredParameters: ['created', 'expires', 'nonce', 'keyid', 'tag'],
          // requireCurrent checks times, to distinguish expired from invalid signatures.
          now: 0,
          clockSkew: Number.MAX_SAFE_INTEGER,
        },
        resolveVerifier: async ({ parameters: { keyid = '' } }) => {
          thumbprint = keyid
          const key = await findSigner(keyid)
          return { algorithm: 'ed25519', verify: (data, signature) => verifyEd25519(key, data, signature) }
        },
      },
    )
    const { created, expires, nonce, tag } = parameters
    if (thumbprint === undefined || created === undefined || expires === undefined || nonce === undefined)
      throw new Error('unreachable')
    if (tag !== TAG) throw invalid(`its tag is not "${TAG}"`)
    if (nonce.length < MIN_NONCE_LENGTH || nonce.length > MAX_NONCE_LENGTH)
      throw invalid('its nonce must have 16 bytes or more')
    return { created, expires, nonce, thumbprint }
  } catch (error) {
    if (!isSignatureError(error)) throw error
    if (error.code === 'ResolverFailed' && error.cause !== undefined) throw error.cause
    throw invalid(error.message, origin)
  }
}

function requiredComponents(request: RawRequest): string[] {
  const hasBody = request.body.length > 0 || findHeader(request, 'content-digest') !== undefined
  return [
    ...COMPONENTS,
    ...(hasBody ? ['content-digest'] : []),
    ...OPTIONAL_COMPONENTS.filter((name) => findHeader(request, name) !== undefined),
  ]
}

function requireCurrent({ created, expires }: SignatureTimes, now: Date): void {
  const seconds = now.getTime() / 1000
  if (expires <= created || expires - created > MAX_SIGNATURE_SECONDS)
    throw invalid(`it must expire after it was created, at most ${MAX_SIGNATURE_SECONDS} seconds later`)
  if (created > seconds + SKEW_SECONDS || expires < seconds - SKEW_SECONDS)
    throw new Failure(
      'signature_expired',
      `The signature is valid from ${created} to ${expires}; the time is ${Math.floor(seconds)}.`,
      {
        hint: `Sign again, with a clock accurate to ${SKEW_SECONDS} seconds.`,
      },
    )
}

function findHeader(request: RawRequest, name: string): string | undefined {
  const values = request.fields
    .filter((field) => field.name.toLowerCase() === name)
    .map((field) => field.value)
  return values.length === 0 ? undefined : values.join(', ')
}

function unknownKey(): Failure {
  return new Failure('unknown_key', 'The signing key is unknown, revoked or expired.', {
    hint: 'The owner must register it with POST /api/agents/keys; keyid is the RFC 7638 thumbprint of the public key.',
  })
}

/** @param origin origin that must be signed, whatever Host header was sent. */
function invalid(why: string, origin?: string): Failure {
  const named = origin === undefined ? '' : ` ("${new URL(origin).host}" here)`
  const url = origin === undefined ? '' : ` with --url ${origin}, this gateway's PUBLIC_ORIGIN,`
  return new Failure('signature_invalid', `The request signature is not valid: ${why}.`, {
    hint: `Cover @method, @authority${named}, @path, @query, with a body content-digest, and ${OPTIONAL_COMPONENTS.join(', ')} when sent; parameters created, expires, nonce, keyid, tag="${TAG}". "bursar agent call" and "bursar mcp"${url} sign for you.`,
  })
}
