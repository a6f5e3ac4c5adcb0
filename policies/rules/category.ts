import { buildViolation, type Violation } from '../decision.ts'
import type { Policy } from '../policy.ts'
import type { SpendFacts } from '../spend.ts'

/** Only listed categories may be spent on. */
export function category({ categories }: Policy, spend: SpendFacts): Violation | undefined {
  if (categories.allow.includes(spend.category)) return undefined
  return buildViolation('category', { limit: categories.allow.join(','), requested: spend.category })
}
