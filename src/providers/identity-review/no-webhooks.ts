/** For a provider that sends no webhooks: whoever sends one is not it. */
import { Failure } from '../../failures/failure.ts'
import type { IdentityReview } from '../identity-review.ts'

/** Takes no webhook. */
export const noWebhooks: Pick<IdentityReview, 'verify' | 'readNotice'> = {
  verify: () => {
    throw new Failure('signature_invalid', 'No provider of identity reviews sends webhooks here.')
  },
  readNotice: () => ({ reference: null, type: 'unknown' }),
}
