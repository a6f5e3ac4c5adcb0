import { buildViolation, type Violation } from '../decision.ts'
import type { Policy } from '../policy.ts'
import type { SpendFacts } from '../spend.ts'

/** A policy allows nothing from its `expiresAt` on. An unreadable time counts as too late. */
export function expired({ expiresAt }: Policy, _spend: SpendFacts, now: Date): Violation | undefined {
  if (expiresAt === undefined || now.getTime() < Date.parse(expiresAt)) return undefined
  const requested = Number.isNaN(now.getTime()) ? null : now.toISOString()
  return buildViolation('expired', { limit: expiresAt, requested })
}
