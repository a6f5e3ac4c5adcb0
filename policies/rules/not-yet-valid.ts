import { buildViolation, type Violation } from '../decision.ts'
import type { Policy } from '../policy.ts'
import type { SpendFacts } from '../spend.ts'

/** A policy allows nothing before its `notBefore`. An unreadable time counts as too early. */
export function notYetValid({ notBefore }: Policy, _spend: SpendFacts, now: Date): Violation | undefined {
  if (notBefore === undefined || now.getTime() >= Date.parse(notBefore)) return undefined
  const requested = Number.isNaN(now.getTime()) ? null : now.toISOString()
  return buildViolation('not_yet_valid', { limit: notBefore, requested, resetsAt: notBefore })
}
