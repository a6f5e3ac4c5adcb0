/**
 * Bearer tokens for a facilitator that wants one for each request, such as Coinbase's: a JWT that names the method, host
 * and path, signed with ES256 or EdDSA.
 * @see https://docs.cdp.coinbase.com/get-started/authentication/jwt-authentication
 */
import { SignJWT } from 'jose'
import type { Clock } from '../../../core/base/clock.ts'
import { randomToken } from '../../../core/base/ids.ts'
import { importJwtKey } from '../../../core/base/jwt-key.ts'

/** Credentials of the facilitator. @property secret an EC key as PEM, or an Ed25519 key: base64 of seed and public key. */
export interface FacilitatorKey {
  readonly id: string
  readonly secret: string
}

/** Lifetime of a token. */
const SECONDS = 120

/** Creates the headers of each kind of request to a facilitator; every call signs new tokens. */
export function createFacilitatorHeaders({ id, secret }: FacilitatorKey, url: string, clock: Clock) {
  const { key, alg } = importJwtKey(secret)
  const { host, pathname } = new URL(url)
  const base = pathname.replace(/\/+$/, '')
  const headersFor = async (method: 'GET' | 'POST', path: string) => {
    const seconds = Math.floor(clock().getTime() / 1_000)
    const uri = `${method} ${host}${base}/${path}`
    // Older documents of Coinbase name the claim `uri`, its libraries `uris`.
    const token = await new SignJWT({ uri, uris: [uri] })
      .setProtectedHeader({ alg, kid: id, typ: 'JWT', nonce: randomToken(16) })
      .setIssuer('cdp')
      .setSubject(id)
      .setIssuedAt(seconds)
      .setNotBefore(seconds)
      .setExpirationTime(seconds + SECONDS)
      .sign(key)
    return { authorization: `Bearer ${token}` }
  }
  return async () => ({
    verify: await headersFor('POST', 'verify'),
    settle: await headersFor('POST', 'settle'),
    supported: await headersFor('GET', 'supported'),
  })
}
