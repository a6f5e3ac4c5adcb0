/**
 * Budget counters of a policy: the same rules as the database's spend function, for simulation and as its reference.
 */
import { type Violation, violationOf } from './decision.ts'
import type { Policy } from './policy.ts'
import { usdMicrosOf, usdOfMicros } from './usd.ts'

/** Usage of one UTC day, including holds. @property usedMicros millionths of a US dollar. @property count spends. */
export interface DailyUsage {
  readonly usedMicros: bigint
  readonly count: number
}

/**
 * Finds the counter rules that one more spend would violate.
 * @param usdMicros value of the spend; null denies, because it cannot be counted.
 */
export function dailyViolations(
  policy: Policy,
  usdMicros: bigint | null,
  usage: DailyUsage,
  now: Date,
): readonly Violation[] {
  const resetsAt = nextUtcMidnight(now)
  return [...budgetViolation(policy, usdMicros, usage, resetsAt), ...countViolation(policy, usage, resetsAt)]
}

/**
 * Checks one more spend against the owner's cap over all keys of the account.
 * @param maxMicros the cap in millionths of a US dollar; null: no cap.
 * @param usedMicros usage of all keys on that day.
 * @param usdMicros value of the spend; null denies, because it cannot be counted.
 */
export function ownerViolation(
  maxMicros: bigint | null,
  usdMicros: bigint | null,
  usedMicros: bigint,
  now: Date,
): Violation | undefined {
  if (maxMicros === null) return undefined
  return exceeding('owner_budget', maxMicros, usdMicros, usedMicros, nextUtcMidnight(now))
}

/**
 * Checks whether a payee is still in its cool-down. An unknown payee always is.
 * @param firstSeenAt when the key first requested to pay this payee; null: never before.
 */
export function cooldownViolation(
  { counterparties }: Policy,
  counterparty: string | null,
  firstSeenAt: Date | null,
  now: Date,
): Violation | undefined {
  const seconds = counterparties?.newPayeeCooldownSec
  if (seconds === undefined) return undefined
  const paidFrom = (firstSeenAt ?? now).getTime() + seconds * 1000
  if (counterparty !== null && now.getTime() >= paidFrom) return undefined
  return violationOf('new_payee_cooldown', {
    limit: String(seconds),
    requested: counterparty?.toLowerCase() ?? null,
    resetsAt: counterparty === null ? null : isoOf(new Date(paidFrom)),
  })
}

function budgetViolation(
  policy: Policy,
  usdMicros: bigint | null,
  { usedMicros }: DailyUsage,
  resetsAt: string | null,
): Violation[] {
  const limit = usdMicrosOf(policy.dailyBudget.max)
  return [exceeding('daily_budget', limit, usdMicros, usedMicros, resetsAt) ?? []].flat()
}

function exceeding(
  rule: 'daily_budget' | 'owner_budget',
  limit: bigint,
  usdMicros: bigint | null,
  usedMicros: bigint,
  resetsAt: string | null,
): Violation | undefined {
  if (usdMicros !== null && usdMicros >= 0n && usedMicros + usdMicros <= limit) return undefined
  return violationOf(rule, {
    limit: usdOfMicros(limit),
    used: usdOfMicros(usedMicros),
    requested: usdMicros === null ? null : usdOfMicros(usdMicros),
    remaining: usdOfMicros(usedMicros < limit ? limit - usedMicros : 0n),
    resetsAt,
  })
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
  return isoOf(new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1)))
}

function isoOf(time: Date): string | null {
  return Number.isNaN(time.getTime()) ? null : time.toISOString()
}
