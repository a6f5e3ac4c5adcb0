/**
 * Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`, in base64 after `v1,`. Several signatures and secrets may
 * be valid at once, so that secrets can be rotated.
 * @see https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { Failure } from '../core/failures/failure.ts'
import type { WebhookDelivery } from './card-processor/port.ts'

/** Maximum difference between a webhook's timestamp and our clock. */
const TOLERANCE_SECONDS = 300

/**
 * Builds the headers of a signed webhook, with a signature by each secret. @param secrets `whsec_` and base64. @param at
 * rounded down to seconds.
 */
export function signWebhook(
  { id, body, at }: { id: string; body: string | Uint8Array; at: Date },
  ...secrets: readonly [string, ...string[]]
): Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string> {
  const timestamp = String(Math.floor(at.getTime() / 1000))
  const signatures = secrets.map((secret) => `v1,${hmac(secret, { id, timestamp, body }).toString('base64')}`)
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') }
}

/** Verifies a webhook. @returns its id. @throws Failure `signature_invalid`. */
export function verifyWebhook(
  { header, body }: WebhookDelivery,
  secrets: readonly string[],
  now: Date,
): string {
  const [id = '', timestamp = '', given = ''] = ['id', 'timestamp', 'signature'].map((name) =>
    header(`webhook-${name}`),
  )
  if (id === '' || id.length > 255 || !/^\d{1,12}$/.test(timestamp) || given.length > 4096)
    throw invalid('The webhook-id, webhook-timestamp or webhook-signature header is missing or malformed.')
  if (Math.abs(now.getTime() / 1000 - Number(timestamp)) > TOLERANCE_SECONDS)
    throw invalid(`The webhook's timestamp is more than ${TOLERANCE_SECONDS} s away from now.`)
  const signatures = given
    .split(' ')
    .flatMap((part) => (part.startsWith('v1,') ? [Buffer.from(part.slice(3), 'base64')] : []))
  const expected = secrets.map((secret) => hmac(secret, { id, timestamp, body }))
  // All pairs are compared, so that timing does not reveal which one matched.
  const matches = expected.flatMap((right) =>
    signatures.map((signature) => signature.length === right.length && timingSafeEqual(signature, right)),
  )
  if (!matches.includes(true)) throw invalid('The webhook-signature does not verify.')
  return id
}

function hmac(
  secret: string,
  { id, timestamp, body }: { id: string; timestamp: string; body: string | Uint8Array },
): Buffer {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  return createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest()
}

function invalid(detail: string): Failure {
  return new Failure('signature_invalid', `${detail} The webhook was ignored.`, {
    hint: 'Sign with the current secret, over the exact bytes of the body, and send it at once.',
  })
}
