/**
 * Sumsub's webhooks: `X-Payload-Digest` is the HMAC of the raw body in hex, `X-Payload-Digest-Alg` names the hash.
 * They have no timestamp and no id, so repeats are recognized by their digest.
 * @see https://docs.sumsub.com/docs/webhook-manager
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { Failure } from '../../core/failures/failure.ts'
import type { WebhookDelivery } from '../card-processor/port.ts'
import type { ReviewNotice } from './port.ts'

/** Sumsub also offers SHA-1, which is not accepted. */
const hashes: ReadonlyMap<string, string> = new Map([
  ['HMAC_SHA256_HEX', 'sha256'],
  ['HMAC_SHA512_HEX', 'sha512'],
])

const notice = z.object({
  applicantId: z
    .string()
    .regex(/^[0-9a-zA-Z]{1,64}$/)
    .nullish(),
  type: z.string().min(1).max(100),
})

/** @param secret null: every webhook is rejected. @throws Failure `signature_invalid`. */
export function verifySumsubWebhook({ header, body }: WebhookDelivery, secret: string | null): void {
  const hash = hashes.get(header('x-payload-digest-alg') ?? '')
  if (hash === undefined)
    throw invalid('The X-Payload-Digest-Alg header names neither HMAC_SHA256_HEX nor HMAC_SHA512_HEX.')
  const claimed = Buffer.from((header('x-payload-digest') ?? '').toLowerCase())
  const digest = secret === null ? null : createHmac(hash, secret).update(body).digest('hex')
  if (digest === null || claimed.length !== digest.length || !timingSafeEqual(claimed, Buffer.from(digest)))
    throw invalid('The X-Payload-Digest does not verify.')
}

/** @throws Failure `invalid_request`. */
export function readSumsubWebhook(message: unknown): ReviewNotice {
  const parsed = notice.safeParse(message)
  // The error omits the body, which may contain personal data.
  if (!parsed.success) throw new Failure('invalid_request', 'The webhook is not in Sumsub’s format.')
  return { reference: parsed.data.applicantId ?? null, type: parsed.data.type }
}

function invalid(detail: string): Failure {
  return new Failure('signature_invalid', `${detail} The webhook was ignored.`, {
    hint: 'Sign the exact bytes of the body with the webhook’s secret.',
  })
}
