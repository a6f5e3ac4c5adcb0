/**
 * Budget counters of a policy: the same rules as the database's spend function, for simulation and as its reference.
 */
import { buildViolation, type RuleName, type Violation } from './decision.ts'
import type { Policy } from './policy.ts'
import type { SpendFacts } from './spend.ts'
import { formatUsd, toUsdMicros } from './usd.ts'

/** Period of a budget, UTC: calendar day, ISO week (from Monday), calendar month. */
export type BudgetPeriod = 'day' | 'week' | 'month'

export const budgetPeriods = ['day', 'week', 'month'] as const satisfies readonly BudgetPeriod[]

/** Span of a budget: a period, or the key's life, which never resets. */
export type BudgetSpan = BudgetPeriod | 'life'

export const budgetSpans = [...budgetPeriods, 'life'] as const satisfies readonly BudgetSpan[]

/** Usage of one period, including holds. @property usedMicros millionths of a US dollar. @property count spends. */
export interface Usage {
  readonly usedMicros: bigint
  readonly count: number
}

/** Usage of the periods that a moment lies in, and of the key's life. */
export type PeriodUsage = Readonly<Record<BudgetSpan, Usage>>

/** One rule of a budget. Exactly one of the limits is not null. @property maxMicros millionths of a US dollar. */
export interface BudgetRule {
  readonly rule: RuleName
  readonly period: BudgetSpan
  readonly maxMicros: bigint | null
  readonly maxCount: number | null
}

/** The counter rules of a policy, in the order of its violations. */
export function budgetRules(policy: Policy): readonly BudgetRule[] {
  const { dailyBudget, weeklyBudget, monthlyBudget, totalBudget } = policy
  return [
    ...buildRules('day', ['daily_budget', 'daily_count'], dailyBudget),
    ...buildRules('week', ['weekly_budget', 'weekly_count'], weeklyBudget),
    ...buildRules('month', ['monthly_budget', 'monthly_count'], monthlyBudget),
    ...buildRules('life', ['total_budget', 'total_count'], totalBudget),
  ]
}

function buildRules(
  period: BudgetSpan,
  [value, number]: readonly [RuleName, RuleName],
  budget: Policy['weeklyBudget'],
): BudgetRule[] {
  if (budget === undefined) return []
  const { max, maxCount } = budget
  return [
    { rule: value, period, maxMicros: toUsdMicros(max), maxCount: null },
    ...(maxCount === undefined ? [] : [{ rule: number, period, maxMicros: null, maxCount }]),
  ]
}

/**
 * Finds the counter rules that one more spend would violate.
 * @param usdMicros value of the spend; null denies, because it cannot be counted.
 */
export function budgetViolations(
  policy: Policy,
  usdMicros: bigint | null,
  usage: PeriodUsage,
  now: Date,
): readonly Violation[] {
  return budgetRules(policy).flatMap((rule) => exceeding(rule, usdMicros, usage[rule.period], now) ?? [])
}

/**
 * Checks one more spend against the owner's caps over all keys of the account.
 * @param caps in millionths of a US dollar; null: no cap.
 * @param used usage of all keys in each period.
 * @param usdMicros value of the spend; null denies, because it cannot be counted.
 */
export function ownerViolations(
  caps: Readonly<Record<BudgetPeriod, bigint | null>>,
  usdMicros: bigint | null,
  used: Readonly<Record<BudgetPeriod, bigint>>,
  now: Date,
): readonly Violation[] {
  return budgetPeriods.flatMap((period) => {
    const rule = { rule: 'owner_budget', period, maxMicros: caps[period], maxCount: null } as const
    return exceeding(rule, usdMicros, { usedMicros: used[period], count: 0 }, now) ?? []
  })
}

/**
 * First moments of the period that contains `now`, and of the next one. Both are invalid if `now` is. A life is all days that
 * a date can name.
 */
export function findPeriod(period: BudgetSpan, now: Date): { readonly start: Date; readonly end: Date } {
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()]
  const monday = day - ((now.getUTCDay() + 6) % 7)
  const bounds = {
    day: [utc(year, month, day), utc(year, month, day + 1)],
    week: [utc(year, month, monday), utc(year, month, monday + 7)],
    month: [utc(year, month, 1), utc(year, month + 1, 1)],
    life: [utc(1970, 0, 1), utc(9999, 11, 31)],
  } as const
  const [start, end] = bounds[period]
  return { start, end }
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
  return buildViolation('new_payee_cooldown', {
    limit: String(seconds),
    requested: counterparty?.toLowerCase() ?? null,
    resetsAt: counterparty === null ? null : toIso(new Date(paidFrom)),
  })
}

/** Names a spend so that equal spends have one name, as the database's `repeat_name` does. */
export function nameRepeat({ category, amount, counterparty, symbol, seller }: RepeatedSpend): string {
  const payee = seller?.origin ?? counterparty?.toLowerCase() ?? symbol
  return JSON.stringify([category, amount, payee])
}

/** @property amount decimal string of the asset. */
type RepeatedSpend = Pick<SpendFacts, 'category' | 'counterparty' | 'symbol' | 'seller'> & {
  readonly amount: string
}

/**
 * Checks whether a policy allows one more equal spend.
 * @param earlier times of the equal spends that were allowed, oldest first.
 */
export function repeatViolation(
  { repeatLimit }: Policy,
  earlier: readonly Date[],
  now: Date,
): Violation | undefined {
  if (repeatLimit === undefined) return undefined
  const { count, perSec } = repeatLimit
  const since = earlier.at(-count)
  if (since === undefined) return undefined
  const from = new Date(since.getTime() + perSec * 1000)
  if (from <= now) return undefined
  return buildViolation('repeat_limit', {
    limit: String(count),
    used: String(count),
    requested: '1',
    remaining: '0',
    resetsAt: toIso(from),
  })
}

function exceeding(
  { rule, period, maxMicros, maxCount }: BudgetRule,
  usdMicros: bigint | null,
  { usedMicros, count }: Usage,
  now: Date,
): Violation | undefined {
  const resetsAt = period === 'life' ? null : toIso(findPeriod(period, now).end)
  if (maxMicros !== null && (usdMicros === null || usdMicros < 0n || usedMicros + usdMicros > maxMicros))
    return buildViolation(rule, {
      limit: formatUsd(maxMicros),
      used: formatUsd(usedMicros),
      requested: usdMicros === null ? null : formatUsd(usdMicros),
      remaining: formatUsd(usedMicros < maxMicros ? maxMicros - usedMicros : 0n),
      resetsAt,
    })
  if (maxCount !== null && count + 1 > maxCount)
    return buildViolation(rule, {
      limit: String(maxCount),
      used: String(count),
      requested: '1',
      remaining: String(Math.max(maxCount - count, 0)),
      resetsAt,
    })
  return undefined
}

function utc(year: number, month: number, day: number): Date {
  return new Date(Date.UTC(year, month, day))
}

function toIso(time: Date): string | null {
  return Number.isNaN(time.getTime()) ? null : time.toISOString()
}
