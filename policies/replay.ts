/** Replays past spends under another policy: rules and counters, over the recorded facts. */
import { needsApproval } from './approval.ts'
import {
  type BudgetSpan,
  budgetSpans,
  budgetViolations,
  cooldownViolation,
  findPeriod,
  nameRepeat,
  repeatViolation,
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
  /** Decimal string of the asset. */
  readonly amount: string
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
  const repeats = new Map<string, Date[]>()
  return past.map(({ id, at, spend, amount, was, isReturned, isApproved, overruled = [], beside }) => {
    const readUsage = (period: BudgetSpan) =>
      usage.get(namePeriod(period, at)) ?? { usedMicros: 0n, count: 0 }
    const used = {
      day: readUsage('day'),
      week: readUsage('week'),
      month: readUsage('month'),
      life: readUsage('life'),
    }
    const payee = spend.counterparty?.toLowerCase() ?? null
    const name = nameRepeat({ ...spend, amount })
    const needsOwner = !isApproved && needsApproval(policy, spend.usdMicros, spend.seller ?? null)
    const isSeen = needsOwner || isApproved
    const violations = [
      ...evaluate(policy, spend, at),
      ...beside,
      ...budgetViolations(policy, spend.usdMicros, used, at),
      ...[
        cooldownViolation(policy, payee, payee === null ? null : (firstSeen.get(payee) ?? null), at) ?? [],
      ].flat(),
      ...[(isSeen ? undefined : repeatViolation(policy, repeats.get(name) ?? [], at)) ?? []].flat(),
    ].filter(({ rule }) => !overruled.includes(rule))
    if (payee !== null && !firstSeen.has(payee)) firstSeen.set(payee, at)
    const now = verdictNow(was, needsOwner, violations)
    if (now === 'allow') repeats.set(name, [...(repeats.get(name) ?? []), at])
    if (now === 'allow' && !isReturned)
      for (const period of budgetSpans) {
        const { usedMicros, count } = used[period]
        usage.set(namePeriod(period, at), {
          usedMicros: usedMicros + (spend.usdMicros ?? 0n),
          count: count + 1,
        })
      }
    return { id, was, now, violations }
  })
}

function namePeriod(period: BudgetSpan, at: Date): string {
  return `${period} ${findPeriod(period, at).start.getTime()}`
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
