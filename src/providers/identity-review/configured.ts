/** Who reviews identities by a configuration: production without a provider verifies nobody, rather than everybody. */
import type { Clock } from '../../base/clock.ts'
import type { Config } from '../../config/read-config.ts'
import type { IdentityReview } from '../identity-review.ts'
import { noReview } from './none.ts'
import { createSandboxReview } from './sandbox.ts'
import { createSumsubReview } from './sumsub.ts'

/** The reviewer. */
export function createConfiguredReview(
  { sumsub, mode }: Pick<Config, 'sumsub' | 'mode'>,
  clock: Clock,
): IdentityReview {
  if (sumsub !== null) return createSumsubReview({ ...sumsub, clock })
  return mode === 'sandbox' ? createSandboxReview(clock) : noReview
}
