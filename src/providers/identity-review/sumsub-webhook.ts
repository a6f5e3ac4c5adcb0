/**
 * Sumsub's webhooks: `X-Payload-Digest` is the HMAC of the raw body in hex, `X-Payload-Digest-Alg` says by which hash. They
 * bear no moment and no id, so one that is sent again is known by its digest alone.
 * @see https://docs.sumsub.com/docs/webhook-manager
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { Failure } from '../../failures/failure.ts'
import type { WebhookDelivery } from '../card-processor.ts'
import type { ReviewNotice } from '../identity-review.ts'

/** SHA-1 is offered by Sumsub too, and not taken. */
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

/** @param secret null: nobody is known, and nothing verifies. @throws Failure `signature_invalid`. */
export function verifySumsubWebhook({ header, body }: WebhookDelivery, secret: string | null): void {
  const hash = hashes.get(header('x-payload-digest-alg') ?? '')
  if (hash === undefined)
    throw invalid('The X-Payload-Digest-Alg header names neither HMAC_SHA256_HEX nor HMAC_SHA512_HEX.')
  const told = Buffer.from((header('x-payload-digest') ?? '').toLowerCase())
  const digest = secret === null ? null : createHmac(hash, secret).update(body).digest('hex')
  if (digest === null || told.length !== digest.length || !timingSafeEqual(told, Buffer.from(digest)))
    throw invalid('The X-Payload-Digest does not verify.')
}

/** @throws Failure `invalid_request`. */
export function readSumsubWebhook(message: unknown): ReviewNotice {
  const parsed = notice.safeParse(message)
  // What it holds of a person is not repeated.
  if (!parsed.success) throw new Failure('invalid_request', 'The webhook is none of Sumsub’s.')
  return { reference: parsed.data.applicantId ?? null, type: parsed.data.type }
}

function invalid(detail: string): Failure {
  return new Failure('signature_invalid', `${detail} Nothing was done.`, {
    hint: 'Sign the exact bytes of the body with the webhook’s secret.',
  })
}
