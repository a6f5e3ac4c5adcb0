/**
 * The Ed25519 key that signs receipts: one of its own, wherever it is, or one derived from the data key, identical in every process and
 * stored nowhere.
 */
import { createPublicKey, sign } from 'node:crypto'
import { calculateJwkThumbprint } from 'jose'
import { z } from 'zod'
import type { JwsSigner } from '../../core/base/jws.ts'
import { derivedSigningKey } from '../../core/base/seal.ts'
import type { DocumentKey, Keys } from '../../providers/keys/port.ts'

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

/**
 * Its `sign` throws Failure `provider_unavailable` when the key cannot be used now. @property keyId RFC 7638 thumbprint. @property publicKey
 * base64url. @property keySet this key alone.
 */
export interface SigningKey extends JwsSigner {
  readonly publicKey: string
  readonly keySet: KeySet
}

async function createSigningKey({
  publicKey: bytes,
  sign,
}: Pick<DocumentKey, 'publicKey' | 'sign'>): Promise<SigningKey> {
  const publicKey = Buffer.from(bytes).toString('base64url')
  const keyId = await calculateJwkThumbprint({ kty: 'OKP', crv: 'Ed25519', x: publicKey })
  return { keyId, publicKey, keySet: buildKeySet([{ kid: keyId, publicKey }]), sign }
}

export async function deriveSigningKey(dataKey: Uint8Array): Promise<SigningKey> {
  const privateKey = derivedSigningKey(dataKey, 'decision receipts')
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' })
  return createSigningKey({
    publicKey: Buffer.from(x, 'base64url'),
    sign: async (data) => sign(null, data, privateKey),
  })
}

/** Opens the key of a configuration: its own, or the derived one where none is configured. */
export async function openReceiptKey(
  keys: Pick<Keys, 'openDocumentKey'>,
  { receiptKey, dataKey }: { receiptKey: string | null; dataKey: Uint8Array },
): Promise<SigningKey> {
  if (receiptKey === null) return deriveSigningKey(dataKey)
  return createSigningKey(await keys.openDocumentKey('RECEIPT_KEY', receiptKey))
}

export function buildKeySet(keys: readonly { readonly kid: string; readonly publicKey: string }[]): KeySet {
  return {
    keys: keys.map(({ kid, publicKey }) => ({
      ...{ kty: 'OKP', crv: 'Ed25519', x: publicKey, kid, alg: 'EdDSA', use: 'sig' },
    })),
  }
}
