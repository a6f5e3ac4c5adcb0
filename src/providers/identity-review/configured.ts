/** Selects the identity reviewer: production without a provider verifies no applicants, instead of all. */
import type { Clock } from '../../core/base/clock.ts'
import type { Config } from '../../core/config/read-config.ts'
import { noReview } from './none.ts'
import type { IdentityReview } from './port.ts'
import { createSandboxReview } from './sandbox.ts'
import { createSumsubReview } from './sumsub.ts'

export function createConfiguredReview(
  { sumsub, mode }: Pick<Config, 'sumsub' | 'mode'>,
  clock: Clock,
): IdentityReview {
  if (sumsub !== null) return createSumsubReview({ ...sumsub, clock })
  return mode === 'sandbox' ? createSandboxReview(clock) : noReview
}
