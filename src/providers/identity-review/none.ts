/** The identity reviewer without a provider: verifies no applicants, instead of all. */
import { Failure } from '../../core/failures/failure.ts'
import { noWebhooks } from './no-webhooks.ts'
import type { IdentityReview } from './port.ts'

const refuse = async () => {
  throw new Failure('provider_unavailable', 'No identity reviewer is configured.', {
    retryAfter: 60,
  })
}

export const noReview: IdentityReview = { submit: refuse, read: refuse, page: null, ...noWebhooks }
