/** Rejects webhooks for providers that send none. */
import { Failure } from '../../core/failures/failure.ts'
import type { IdentityReview } from './port.ts'

export const noWebhooks: Pick<IdentityReview, 'verify' | 'readNotice'> = {
  verify: () => {
    throw new Failure('signature_invalid', 'The configured identity reviewer sends no webhooks.')
  },
  readNotice: () => ({ reference: null, type: 'unknown' }),
}
