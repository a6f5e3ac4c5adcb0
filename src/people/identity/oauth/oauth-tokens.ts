/**
 * Access tokens of OAuth clients: short-lived JWTs of our authorization server, valid at `/mcp` only. The grant
 * behind a token is a key, read on every request, so pausing or revoking it applies immediately.
 * @see https://www.rfc-editor.org/rfc/rfc9068
 */
import { createPublicKey, type KeyObject } from 'node:crypto'
import { calculateJwkThumbprint, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose'
import { z } from 'zod'
import type { Principal } from '../../../core/base/principal.ts'
import type { RotatingKey } from '../../../core/base/rotating-key.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Connection } from '../../../storage/database.ts'
import { requireUnlocked } from '../accounts.ts'
import { findKey } from '../store.ts'

/** @property origin base of issuer and resource. */
export interface OAuthSettings {
  readonly origin: string
  readonly accessTokenKey: RotatingKey
}

/** The token issuer. @see https://www.rfc-editor.org/rfc/rfc8414 */
export function buildIssuer(origin: string): string {
  return `${origin}/oauth`
}

/** The resource that tokens are issued for. @see https://www.rfc-editor.org/rfc/rfc8707 */
export function buildResource(origin: string): string {
  return `${origin}/mcp`
}

/** Claim with the id of the grant's key. */
export const KEY_CLAIM = 'bursar_key'

/**
 * Claim of tokens whose client asked for all that it was granted: they follow the key's scopes, also those that its owner
 * grants later. Without it a token never has more than its `scope`.
 */
export const WHOLE_CLAIM = 'bursar_whole'

const claims = z.object({
  [KEY_CLAIM]: z.string(),
  [WHOLE_CLAIM]: z.literal(true).optional(),
  scope: z.string().optional(),
})

/** The keys as private JWKs for the authorization server, which signs by the first, and publishes all. */
export function exportTokenJwks(keys: RotatingKey): Promise<Readonly<Record<string, unknown>>[]> {
  return Promise.all(
    listKeys(keys).map(async (key) => {
      const jwk = key.export({ format: 'jwk' })
      const { x = '' } = jwk
      const kid = await calculateJwkThumbprint({ kty: 'OKP', crv: 'Ed25519', x })
      return { ...jwk, kid, alg: 'EdDSA', use: 'sig' }
    }),
  )
}

function listKeys({ current, previous }: RotatingKey): readonly KeyObject[] {
  return previous === null || previous.equals(current) ? [current] : [current, previous]
}

// Importing a key costs as much as a verification.
const publicKeys = new WeakMap<RotatingKey, readonly KeyObject[]>()

function listPublicKeys(keys: RotatingKey): readonly KeyObject[] {
  const known = publicKeys.get(keys) ?? listKeys(keys).map((key) => createPublicKey(key))
  publicKeys.set(keys, known)
  return known
}

/** True if a bearer credential claims to be an access token; nothing is verified. */
export function isAccessToken(token: string): boolean {
  try {
    return decodeProtectedHeader(token).typ === 'at+jwt'
  } catch {
    return false
  }
}

/**
 * Authenticates an access token, with the key's scopes: for a client that asked for fewer, those that both have. @throws Failure `unauthenticated`,
 * `unknown_key`, `account_locked`.
 */
export async function authenticateAccessToken(
  { database, settings }: { database: Connection; settings: OAuthSettings },
  token: string,
  now: Date,
): Promise<Principal> {
  const payload = await verifyToken(settings, token, now).catch((cause: unknown) => {
    throw invalidToken(cause)
  })
  const { [KEY_CLAIM]: keyId, [WHOLE_CLAIM]: isWhole, scope } = claims.parse(payload)
  const found = await findKey(database, { id: keyId })
  const { key, account } = found ?? {}
  const isOver = key === undefined || (key.expiresAt !== null && key.expiresAt <= now)
  if (isOver || account === undefined || key.kind !== 'grant' || account.id !== payload.sub)
    throw new Failure('unknown_key', 'The grant behind this access token was revoked or has expired.', {
      hint: 'Request a new authorization from the owner.',
    })
  requireUnlocked(account)
  const tokenScopes = isWhole === true ? undefined : scope?.split(' ')
  const scopes =
    tokenScopes === undefined ? key.scopes : key.scopes.filter((held) => tokenScopes.includes(held))
  return { kind: 'key', account, key: { ...key, scopes } }
}

async function verifyToken(
  { origin, accessTokenKey }: OAuthSettings,
  token: string,
  now: Date,
): Promise<JWTPayload> {
  const options = {
    algorithms: ['EdDSA'],
    typ: 'at+jwt',
    issuer: buildIssuer(origin),
    audience: buildResource(origin),
    requiredClaims: ['exp', 'sub', 'client_id'],
    currentDate: now,
  }
  const [current, ...others] = listPublicKeys(accessTokenKey)
  if (current === undefined) throw new Error('no key verifies access tokens')
  try {
    return (await jwtVerify(token, current, options)).payload
  } catch (error) {
    const [previous] = others
    // Names of keys in a token are not trusted: each is tried.
    if (previous === undefined || !(error instanceof errors.JWSSignatureVerificationFailed)) throw error
    return (await jwtVerify(token, previous, options)).payload
  }
}

function invalidToken(cause: unknown): Failure {
  const detail =
    cause instanceof errors.JWTExpired
      ? 'The access token has expired.'
      : 'The access token was not issued by this gateway for this resource.'
  const hint = 'Get a new token from the token endpoint, for the resource named in the 401 response.'
  return new Failure('unauthenticated', detail, { hint }, { cause })
}
