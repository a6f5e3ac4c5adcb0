/** Replays past spends under another policy: rules and counters, over the recorded facts. */
import { needsApproval } from './approval.ts'
import {
  type BudgetPeriod,
  budgetPeriods,
  budgetViolations,
  cooldownViolation,
  periodOf,
  type Usage,
} from './budget.ts'
import type { Violation } from './decision.ts'
import { evaluate } from './evaluate.ts'
import type { Policy } from './policy.ts'
import type { SpendFacts } from './spend.ts'

/** A decided spend. @property isReturned it was allowed and its money came back, so it does not count in the end. */
export interface PastSpend {
  readonly id: string
  readonly at: Date
  readonly spend: SpendFacts
  readonly was: 'allow' | 'deny' | 'insufficient_funds' | 'approval_required'
  readonly isReturned: boolean
  /** True if the owner had approved it. */
  readonly isApproved: boolean
  /** Rules that its owner overruled for this spend alone. */
  readonly overruled?: readonly string[]
  /** Violations outside the policy: a pause, the owner's cap, the AML screening. */
  readonly beside: readonly Violation[]
}

/** Result of a replayed spend. */
export interface Replayed {
  readonly id: string
  readonly was: PastSpend['was']
  readonly now: PastSpend['was']
  readonly violations: readonly Violation[]
}

/**
 * Evaluates past spends in order. Spends that the new policy allows count in its budgets, so an additional early
 * spend can displace a later one. Insufficient funds stay insufficient.
 */
export function replay(policy: Policy, past: readonly PastSpend[]): readonly Replayed[] {
  const usage = new Map<string, Usage>()
  const firstSeen = new Map<string, Date>()
  return past.map(({ id, at, spend, was, isReturned, isApproved, overruled = [], beside }) => {
    const readUsage = (period: BudgetPeriod) =>
      usage.get(namePeriod(period, at)) ?? { usedMicros: 0n, count: 0 }
    const used = { day: readUsage('day'), week: readUsage('week'), month: readUsage('month') }
    const payee = spend.counterparty?.toLowerCase() ?? null
    const violations = [
      ...evaluate(policy, spend, at),
      ...beside,
      ...budgetViolations(policy, spend.usdMicros, used, at),
      ...[
        cooldownViolation(policy, payee, payee === null ? null : (firstSeen.get(payee) ?? null), at) ?? [],
      ].flat(),
    ].filter(({ rule }) => !overruled.includes(rule))
    if (payee !== null && !firstSeen.has(payee)) firstSeen.set(payee, at)
    const needsOwner = !isApproved && needsApproval(policy, spend.usdMicros, spend.seller ?? null)
    const now = verdictNow(was, needsOwner, violations)
    if (now === 'allow' && !isReturned)
      for (const period of budgetPeriods) {
        const { usedMicros, count } = used[period]
        usage.set(namePeriod(period, at), {
          usedMicros: usedMicros + (spend.usdMicros ?? 0n),
          count: count + 1,
        })
      }
    return { id, was, now, violations }
  })
}

function namePeriod(period: BudgetPeriod, at: Date): string {
  return `${period} ${periodOf(period, at).start.getTime()}`
}

function verdictNow(
  was: PastSpend['was'],
  needsOwner: boolean,
  violations: readonly Violation[],
): PastSpend['was'] {
  if (violations.length > 0) return 'deny'
  if (was === 'insufficient_funds') return was
  return needsOwner ? 'approval_required' : 'allow'
}
