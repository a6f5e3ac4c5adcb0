/** Private keys that sign JWTs, in the formats that vendors hand out. */
import { createPrivateKey, type KeyObject } from 'node:crypto'

/**
 * Reads an EC key on P-256 from PEM, or an Ed25519 key from base64 of its seed and public key.
 * @throws Error for any other format; the message does not contain the key.
 */
export function importJwtKey(secret: string): { readonly key: KeyObject; readonly alg: 'ES256' | 'EdDSA' } {
  if (secret.includes('PRIVATE KEY')) {
    const key = createPrivateKey(secret)
    const curve = key.asymmetricKeyDetails?.namedCurve
    if (key.asymmetricKeyType === 'ec' && curve === 'prime256v1') return { key, alg: 'ES256' }
    throw new Error('the key is not an EC key on P-256')
  }
  const bytes = Buffer.from(secret, 'base64')
  if (bytes.length !== 64) throw new Error('the key is neither PEM nor base64 of 64 bytes')
  const d = bytes.subarray(0, 32).toString('base64url')
  const x = bytes.subarray(32).toString('base64url')
  return {
    key: createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d, x }, format: 'jwk' }),
    alg: 'EdDSA',
  }
}
