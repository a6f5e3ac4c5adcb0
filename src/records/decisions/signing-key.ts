/** The Ed25519 key that signs receipts, derived from the data key: identical in every process, and stored nowhere. */
import { createPublicKey, type KeyObject } from 'node:crypto'
import { calculateJwkThumbprint } from 'jose'
import { z } from 'zod'
import { derivedSigningKey } from '../../core/base/seal.ts'

/** Public keys as a JWK Set. @see https://www.rfc-editor.org/rfc/rfc8037 */
export const keySet = z.looseObject({
  keys: z.array(
    z.looseObject({
      kty: z.literal('OKP'),
      crv: z.literal('Ed25519'),
      x: z.string(),
      kid: z.string(),
    }),
  ),
})

export type KeySet = z.output<typeof keySet>

/** @property keyId RFC 7638 thumbprint. */
export interface SigningKey {
  readonly privateKey: KeyObject
  readonly keyId: string
  readonly keySet: KeySet
}

export async function deriveSigningKey(dataKey: Uint8Array): Promise<SigningKey> {
  const privateKey = derivedSigningKey(dataKey, 'decision receipts')
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' })
  const jwk = { kty: 'OKP', crv: 'Ed25519', x } as const
  const keyId = await calculateJwkThumbprint(jwk)
  return { privateKey, keyId, keySet: { keys: [{ ...jwk, kid: keyId, alg: 'EdDSA', use: 'sig' }] } }
}
