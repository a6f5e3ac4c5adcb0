/**
 * Signs agents' requests. Has few imports, because it is on the startup path of `bursar mcp`.
 * @see https://www.rfc-editor.org/rfc/rfc9421
 */
import { type KeyObject, sign } from 'node:crypto'
import { createSignature } from 'http-message-sig'
import { randomToken } from '../../../core/base/ids.ts'
import { contentDigest } from './content-digest.ts'

/** Signature tag. */
export const TAG = 'bursar'
/** Maximum lifetime of a signature. */
export const MAX_SIGNATURE_SECONDS = 300
/** Components covered by every signature. */
export const COMPONENTS = ['@method', '@authority', '@path', '@query'] as const

/** Fields that a signature covers when they are sent. */
export const OPTIONAL_COMPONENTS = ['idempotency-key', 'bursar-delegation', 'bursar-task'] as const

/** @property delegation chain of signed delegations, root first, that made the key: it is sent with every request. */
export interface SigningKey {
  readonly keyId: string
  readonly privateKey: KeyObject
  readonly delegation?: string | undefined
}

/** Builds the signature headers of a request. @param origin gateway origin. @param at signing time. */
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
    ...(key.delegation === undefined ? {} : { 'bursar-delegation': key.delegation }),
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
