import { buildViolation, type Violation } from '../decision.ts'
import type { Policy } from '../policy.ts'
import type { SpendFacts } from '../spend.ts'

/**
 * Money may leave only over listed chains, if the policy lists any. A spend without a known chain violates the list.
 */
export function chain({ chains }: Policy, spend: SpendFacts): Violation | undefined {
  if (chains === undefined || chains.some((allowed) => allowed === spend.chain)) return undefined
  return buildViolation('chain', { limit: chains.join(','), requested: spend.chain })
}
