/** The counters of a policy's day. The same rules as the database's spend function, for simulation and as its reference. */
import { type Violation, violationOf } from './decision.ts'
import type { Policy } from './policy.ts'
import { usdMicrosOf, usdOfMicros } from './usd.ts'

/** What one UTC day has used, holds included. @property usedMicros millionths of a US dollar. @property count spends. */
export interface DailyUsage {
  readonly usedMicros: bigint
  readonly count: number
}

/** The counter rules that one more spend would violate. @param usdMicros the spend's worth; null denies, as it cannot be counted. */
export function dailyViolations(
  policy: Policy,
  usdMicros: bigint | null,
  usage: DailyUsage,
  now: Date,
): readonly Violation[] {
  const resetsAt = nextUtcMidnight(now)
  return [...budgetViolation(policy, usdMicros, usage, resetsAt), ...countViolation(policy, usage, resetsAt)]
}

function budgetViolation(
  policy: Policy,
  usdMicros: bigint | null,
  { usedMicros }: DailyUsage,
  resetsAt: string | null,
): Violation[] {
  const limit = usdMicrosOf(policy.dailyBudget.max)
  if (usdMicros !== null && usdMicros >= 0n && usedMicros + usdMicros <= limit) return []
  return [
    violationOf('daily_budget', {
      limit: usdOfMicros(limit),
      used: usdOfMicros(usedMicros),
      requested: usdMicros === null ? null : usdOfMicros(usdMicros),
      remaining: usdOfMicros(usedMicros < limit ? limit - usedMicros : 0n),
      resetsAt,
    }),
  ]
}

function countViolation(policy: Policy, { count }: DailyUsage, resetsAt: string | null): Violation[] {
  const limit = policy.dailyBudget.maxCount
  if (limit === undefined || count + 1 <= limit) return []
  return [
    violationOf('daily_count', {
      limit: String(limit),
      used: String(count),
      requested: '1',
      remaining: String(Math.max(limit - count, 0)),
      resetsAt,
    }),
  ]
}

function nextUtcMidnight(now: Date): string | null {
  const midnight = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1))
  return Number.isNaN(midnight.getTime()) ? null : midnight.toISOString()
}
