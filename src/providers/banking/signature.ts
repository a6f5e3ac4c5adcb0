/**
 * Bridge's webhook signature: `t=<milliseconds>,v0=<base64>`, RSA with SHA-256 over the SHA-256 digest of `t.body`.
 * @see https://apidocs.bridge.xyz/platform/additional-information/webhooks/signature
 */
import { createHash, type KeyObject, sign, verify } from 'node:crypto'
import { Failure } from '../../core/failures/failure.ts'
import type { WebhookDelivery } from '../card-processor/port.ts'

const TOLERANCE_MS = 600_000
const HEADER = /^t=(\d{1,15}),v0=([A-Za-z0-9+/]{1,2048}={0,2})$/

/** Builds the value of the header `X-Webhook-Signature`. */
export function signBankingWebhook(body: string, { key, at }: { key: KeyObject; at: Date }): string {
  const time = String(at.getTime())
  return `t=${time},v0=${sign('RSA-SHA256', computeDigest(time, Buffer.from(body)), key).toString('base64')}`
}

/**
 * Verifies a webhook.
 * @param keys accepted public keys; without any, verification fails.
 * @throws Failure `signature_invalid`.
 */
export function verifyBankingWebhook(
  { header, body }: WebhookDelivery,
  keys: readonly KeyObject[],
  now: Date,
): void {
  const [, time = '', signature = ''] = HEADER.exec(header('x-webhook-signature') ?? '') ?? []
  if (time === '') throw invalid('The X-Webhook-Signature header is missing or malformed.')
  if (Math.abs(now.getTime() - Number(time)) > TOLERANCE_MS)
    throw invalid(`The webhook's timestamp is more than ${TOLERANCE_MS / 1000} s away from now.`)
  const [digest, signed] = [computeDigest(time, body), Buffer.from(signature, 'base64')]
  if (!keys.some((key) => verify('RSA-SHA256', digest, key, signed)))
    throw invalid('The X-Webhook-Signature does not verify.')
}

function computeDigest(time: string, body: Uint8Array): Buffer {
  return createHash('sha256').update(`${time}.`).update(body).digest()
}

function invalid(detail: string): Failure {
  return new Failure('signature_invalid', `${detail} The webhook was ignored.`, {
    hint: 'Sign the exact bytes of the body, with a new timestamp for every attempt.',
  })
}
