/** Rejects webhooks for providers that send none. */
import { Failure } from '../../failures/failure.ts'
import type { IdentityReview } from '../identity-review.ts'

export const noWebhooks: Pick<IdentityReview, 'verify' | 'readNotice'> = {
  verify: () => {
    throw new Failure('signature_invalid', 'The configured identity reviewer sends no webhooks.')
  },
  readNotice: () => ({ reference: null, type: 'unknown' }),
}
