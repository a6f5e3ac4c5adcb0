/** Nobody reviews identities: then nobody is verified, rather than everybody. */
import { Failure } from '../../failures/failure.ts'
import type { IdentityReview } from '../identity-review.ts'
import { noWebhooks } from './no-webhooks.ts'

const refuse = async () => {
  throw new Failure('provider_unavailable', 'No provider of identity reviews is configured.', {
    retryAfter: 60,
  })
}

/** Refuses every review. */
export const noReview: IdentityReview = { submit: refuse, read: refuse, ...noWebhooks }
