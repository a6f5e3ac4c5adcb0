/** Agents' signed requests, made. Light, because a local agent's process starts with it. @see https://www.rfc-editor.org/rfc/rfc9421 */
import { type KeyObject, sign } from 'node:crypto'
import { createSignature } from 'http-message-sig'
import { randomToken } from '../../base/ids.ts'
import { contentDigest } from './content-digest.ts'

/** The tag of our signatures. */
export const TAG = 'bursar'
/** The longest a signature may live. */
export const MAX_SIGNATURE_SECONDS = 300
/** What every signature covers. */
export const COMPONENTS = ['@method', '@authority', '@path', '@query'] as const

/** An agent's own key. */
export interface SigningKey {
  readonly keyId: string
  readonly privateKey: KeyObject
}

/** The headers that sign a request. @param origin of the gateway. @param at the moment of signing. */
export async function signRequest(
  key: SigningKey,
  {
    origin,
    method,
    target,
    body,
    idempotencyKey,
    at,
  }: {
    origin: string
    method: string
    target: string
    body: Uint8Array | null
    idempotencyKey?: string | undefined
    at: Date
  },
): Promise<Record<string, string>> {
  const headers: Record<string, string> = {
    ...(body === null ? {} : { 'content-digest': contentDigest(body) }),
    ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
  }
  const created = Math.floor(at.getTime() / 1000)
  const fields = Object.entries(headers).map(([name, value]) => ({ name, value }))
  const { signature, signatureInput } = await createSignature(
    { kind: 'request', method, targetUri: `${origin}${target}`, fields },
    {
      components: [...COMPONENTS, ...Object.keys(headers)],
      parameters: {
        created,
        expires: created + MAX_SIGNATURE_SECONDS,
        nonce: randomToken(18),
        keyid: key.keyId,
        tag: TAG,
      },
      signer: { algorithm: 'ed25519', sign: (data) => sign(null, data, key.privateKey) },
    },
  )
  return { ...headers, signature, 'signature-input': signatureInput }
}
