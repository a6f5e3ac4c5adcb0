/**
 * Access tokens of OAuth clients: short JWTs of our own authorization server, good at `/mcp` alone. The grant behind one is a
 * key, read anew on every request: pausing or revoking it counts for the next one.
 * @see https://www.rfc-editor.org/rfc/rfc9068
 */
import { createPublicKey, type KeyObject } from 'node:crypto'
import { calculateJwkThumbprint, decodeProtectedHeader, errors, jwtVerify } from 'jose'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import type { Principal } from '../../base/principal.ts'
import { derivedSigningKey } from '../../base/seal.ts'
import { Failure } from '../../failures/failure.ts'
import type { Connection } from '../../storage/database.ts'
import { requireUnlocked } from '../accounts.ts'
import { findKey } from '../store.ts'

/** Whose tokens. @property origin of the deployment: its issuer and its resource lie below. */
export interface OAuthSettings {
  readonly origin: string
  readonly dataKey: Uint8Array
}

/** Who issues tokens. @see https://www.rfc-editor.org/rfc/rfc8414 */
export function issuerOf(origin: string): string {
  return `${origin}/oauth`
}

/** What tokens are for. @see https://www.rfc-editor.org/rfc/rfc8707 */
export function resourceOf(origin: string): string {
  return `${origin}/mcp`
}

/** The claim that names the grant's key. */
export const KEY_CLAIM = 'bursar_key'

const claims = z.object({ [KEY_CLAIM]: z.string(), scope: z.string().optional() })

/** The key that signs access tokens: derived, so that every process has the same one and none stores it. */
function tokenKeyOf(dataKey: Uint8Array): KeyObject {
  return derivedSigningKey(dataKey, 'oauth access tokens')
}

/** The same key as a private JWK with its id, as the authorization server takes it. */
export async function tokenJwkOf(dataKey: Uint8Array): Promise<Readonly<Record<string, unknown>>> {
  const jwk = tokenKeyOf(dataKey).export({ format: 'jwk' })
  const { x = '' } = jwk
  const kid = await calculateJwkThumbprint({ kty: 'OKP', crv: 'Ed25519', x })
  return { ...jwk, kid, alg: 'EdDSA', use: 'sig' }
}

// Importing a key costs as much as a verification: keep the objects, by the data key's bytes.
const publicKeys = new LRUCache<string, KeyObject>({ max: 4 })

function publicKeyOf(dataKey: Uint8Array): KeyObject {
  const name = Buffer.from(dataKey).toString('base64')
  const known = publicKeys.get(name) ?? createPublicKey(tokenKeyOf(dataKey))
  publicKeys.set(name, known)
  return known
}

/** Whether a Bearer credential says that it is an access token; nothing of it is checked. */
export function isAccessToken(token: string): boolean {
  try {
    return decodeProtectedHeader(token).typ === 'at+jwt'
  } catch {
    return false
  }
}

/**
 * Whom an access token acts for, with the scopes that both the token and its grant have.
 * @throws Failure `unauthenticated`, `unknown_key`, `account_locked`.
 */
export async function authenticateAccessToken(
  { database, settings }: { database: Connection; settings: OAuthSettings },
  token: string,
  now: Date,
): Promise<Principal> {
  const { origin, dataKey } = settings
  const { payload } = await jwtVerify(token, publicKeyOf(dataKey), {
    algorithms: ['EdDSA'],
    typ: 'at+jwt',
    issuer: issuerOf(origin),
    audience: resourceOf(origin),
    requiredClaims: ['exp', 'sub', 'client_id'],
    currentDate: now,
  }).catch((cause: unknown) => {
    throw notHeld(cause)
  })
  const { [KEY_CLAIM]: keyId, scope } = claims.parse(payload)
  const found = await findKey(database, { id: keyId })
  const { key, account } = found ?? {}
  const isOver = key === undefined || (key.expiresAt !== null && key.expiresAt <= now)
  if (isOver || account === undefined || key.kind !== 'grant' || account.id !== payload.sub)
    throw new Failure('unknown_key', 'The grant behind this access token was revoked or has expired.', {
      hint: 'Ask the owner for authorization anew.',
    })
  requireUnlocked(account)
  const asked = scope?.split(' ')
  const scopes = asked === undefined ? key.scopes : key.scopes.filter((held) => asked.includes(held))
  return { kind: 'key', account, key: { ...key, scopes } }
}

function notHeld(cause: unknown): Failure {
  const detail =
    cause instanceof errors.JWTExpired
      ? 'The access token has expired.'
      : 'The access token is not one of ours for this resource.'
  const hint = 'Get a new one from the token endpoint, for the resource that the 401 names.'
  return new Failure('unauthenticated', detail, { hint }, { cause })
}
