/** What would have become of past spends under another policy: the rules and counters, over what was recorded. */
import { needsApproval } from './approval.ts'
import { cooldownViolation, type DailyUsage, dailyViolations } from './budget.ts'
import type { Violation } from './decision.ts'
import { evaluate } from './evaluate.ts'
import type { Policy } from './policy.ts'
import type { SpendFacts } from './spend.ts'

/** A spend that was decided on. @property isReturned it was allowed and its money came back: it never counted in the end. */
export interface PastSpend {
  readonly id: string
  readonly at: Date
  readonly spend: SpendFacts
  readonly was: 'allow' | 'deny' | 'insufficient_funds' | 'approval_required'
  readonly isReturned: boolean
  /** Its owner had approved it. */
  readonly isApproved: boolean
  /** What it was denied for that is no matter of the policy: a pause, the owner's cap, the AML screening. */
  readonly beside: readonly Violation[]
}

/** What it would have been told. */
export interface Replayed {
  readonly id: string
  readonly was: PastSpend['was']
  readonly now: PastSpend['was']
  readonly violations: readonly Violation[]
}

/**
 * Judges past spends in their order. What the new policy would have allowed counts in its budgets, so that one more early on
 * can mean one less later. Where money was missing, it still is.
 */
export function replay(policy: Policy, past: readonly PastSpend[]): readonly Replayed[] {
  const usage = new Map<string, DailyUsage>()
  const firstSeen = new Map<string, Date>()
  return past.map(({ id, at, spend, was, isReturned, isApproved, beside }) => {
    const day = at.toISOString().slice(0, 10)
    const used = usage.get(day) ?? { usedMicros: 0n, count: 0 }
    const payee = spend.counterparty?.toLowerCase() ?? null
    const violations = [
      ...evaluate(policy, spend, at),
      ...beside,
      ...dailyViolations(policy, spend.usdMicros, used, at),
      ...[
        cooldownViolation(policy, payee, payee === null ? null : (firstSeen.get(payee) ?? null), at) ?? [],
      ].flat(),
    ]
    if (payee !== null && !firstSeen.has(payee)) firstSeen.set(payee, at)
    const needsWord = !isApproved && needsApproval(policy, spend.usdMicros)
    const now = verdictNow(was, needsWord, violations)
    if (now === 'allow' && !isReturned)
      usage.set(day, { usedMicros: used.usedMicros + (spend.usdMicros ?? 0n), count: used.count + 1 })
    return { id, was, now, violations }
  })
}

function verdictNow(
  was: PastSpend['was'],
  needsWord: boolean,
  violations: readonly Violation[],
): PastSpend['was'] {
  if (violations.length > 0) return 'deny'
  if (was === 'insufficient_funds') return was
  return needsWord ? 'approval_required' : 'allow'
}
