/** The Ed25519 key that signs receipts: derived from the data key, so that every process has the same one and none stores it. */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { calculateJwkThumbprint } from 'jose'
import { z } from 'zod'
import { derivedSeed } from '../seal.ts'

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

/** A JWK Set of Ed25519 keys. */
export type KeySet = z.output<typeof keySet>

/** What signs receipts. @property keyId RFC 7638 thumbprint. */
export interface SigningKey {
  readonly privateKey: KeyObject
  readonly keyId: string
  readonly keySet: KeySet
}

/** The DER of an Ed25519 private key up to its 32 bytes. @see https://www.rfc-editor.org/rfc/rfc8410#section-7 */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex')

/** The signing key of a deployment. */
export async function signingKeyOf(dataKey: Uint8Array): Promise<SigningKey> {
  const seed = derivedSeed(dataKey, 'decision receipts')
  const privateKey = createPrivateKey({
    key: Buffer.concat([PKCS8_HEAD, seed]),
    format: 'der',
    type: 'pkcs8',
  })
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' })
  const jwk = { kty: 'OKP', crv: 'Ed25519', x } as const
  const keyId = await calculateJwkThumbprint(jwk)
  return { privateKey, keyId, keySet: { keys: [{ ...jwk, kid: keyId, alg: 'EdDSA', use: 'sig' }] } }
}
