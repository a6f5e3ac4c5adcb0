/** Explains a recorded decision: every rule that its policy applies to the spend, with its numbers and its result. */
import { needsApproval } from './approval.ts'
import { budgetRules, type PeriodUsage } from './budget.ts'
import type { RuleName, Violation } from './decision.ts'
import type { Policy } from './policy.ts'
import type { SpendFacts } from './spend.ts'
import { formatUsd, toUsdMicros } from './usd.ts'

/**
 * Result of one rule. `kept`: the spend fits. `broken`: the spend violates it. `approved`: its owner let the spend pass.
 * `asked`: its owner was asked.
 */
export const ruleResults = ['kept', 'broken', 'approved', 'asked'] as const

/**
 * One rule of a decision. Amounts are decimal strings in USD, lists are joined by commas, times are ISO 8601 UTC.
 * @property limit what the policy allows; names after `not ` are denied.
 * @property used what the period had counted before the spend.
 */
export interface ExplainedRule {
  readonly rule: RuleName | 'approval'
  readonly limit: string | null
  readonly used: string | null
  readonly requested: string | null
  readonly result: (typeof ruleResults)[number]
}

/** A violation as it was recorded. Old records lack members. */
type RecordedViolation = { readonly rule: string } & Partial<Omit<Violation, 'rule'>>

/** @property isApproved true if the owner had approved the spend. */
export interface RecordedOutcome {
  readonly verdict: 'allow' | 'deny' | 'insufficient_funds' | 'approval_required'
  readonly violations: readonly RecordedViolation[]
  readonly isApproved: boolean
}

type Applied = Omit<ExplainedRule, 'result'>

/**
 * Lists the rules in the order of the policy. The recorded violations decide on each result, so that the explanation never
 * differs from the decision; recorded violations outside the policy follow at the end.
 * @param usage what each period had counted before the spend.
 */
export function explain(
  policy: Policy,
  spend: SpendFacts,
  usage: PeriodUsage,
  outcome: RecordedOutcome,
): readonly ExplainedRule[] {
  const applied = [...staticRules(policy, spend), ...applyBudgets(policy, spend, usage)]
  const explained = applied.map((rule) => {
    const violation = outcome.violations.find((one) => one.rule === rule.rule)
    return violation === undefined
      ? { ...rule, result: 'kept' as const }
      : explainViolation(violation, rule, outcome)
  })
  const known = new Set<string>(applied.map(({ rule }) => rule))
  return [
    ...explained,
    ...explainViolations(outcome).filter(({ rule }) => !known.has(rule)),
    ...explainApproval(policy, spend, outcome),
  ]
}

/** Lists the recorded violations alone, for a decision whose policy is no longer stored. */
export function explainViolations(outcome: RecordedOutcome): readonly ExplainedRule[] {
  return outcome.violations.map((violation) =>
    explainViolation(violation, { limit: null, used: null, requested: null }, outcome),
  )
}

function explainViolation(
  { rule, limit, used, requested }: RecordedViolation,
  applied: Omit<Applied, 'rule'>,
  { verdict }: RecordedOutcome,
): ExplainedRule {
  return {
    // The name was written by a rule of a decision.
    rule: rule as RuleName,
    limit: limit ?? applied.limit,
    used: used ?? applied.used,
    requested: requested ?? applied.requested,
    result: verdict === 'allow' ? 'approved' : 'broken',
  }
}

function staticRules(policy: Policy, spend: SpendFacts): readonly Applied[] {
  const { category, asset, chain, counterparty, mcc, symbol, seller } = spend
  const { counterparties, sellers, mcc: shops, symbols, assets, chains, timeWindows } = policy
  const usd = spend.usdMicros === null ? null : formatUsd(spend.usdMicros)
  const cooldown = counterparties?.newPayeeCooldownSec
  const applies = (rule: RuleName, isApplied: boolean, limit: string | null, requested: string | null) =>
    isApplied ? [{ rule, limit, used: null, requested }] : []
  return [
    ...applies('per_transaction', true, formatUsd(toUsdMicros(policy.perTransaction.max)), usd),
    ...applies('category', true, policy.categories.allow.join(','), category),
    ...applies('asset', assets !== undefined, assets?.join(',') ?? null, asset),
    ...applies('chain', chains !== undefined && chain !== null, chains?.join(',') ?? null, chain),
    ...applies('counterparty', isListed(counterparties), formatLists(counterparties), counterparty),
    ...applies('seller', seller != null && isListed(sellers), formatLists(sellers), seller?.origin ?? null),
    ...applies(
      'seller_record',
      seller != null && (sellers?.minDelivered !== undefined || sellers?.unknown !== undefined),
      String(sellers?.minDelivered?.ratio ?? 0),
      null,
    ),
    ...applies('mcc', category === 'card' && isListed(shops), formatLists(shops), mcc),
    ...applies('symbol', category === 'invest' && isListed(symbols), formatLists(symbols), symbol),
    ...applies('time_window', timeWindows !== undefined, null, null),
    ...applies('not_yet_valid', policy.notBefore !== undefined, policy.notBefore ?? null, null),
    ...applies('expired', policy.expiresAt !== undefined, policy.expiresAt ?? null, null),
    ...applies('new_payee_cooldown', cooldown !== undefined, String(cooldown), counterparty),
    ...applies('repeat_limit', policy.repeatLimit !== undefined, String(policy.repeatLimit?.count), null),
  ]
}

interface Lists {
  readonly allow?: readonly string[] | undefined
  readonly deny?: readonly string[] | undefined
}

function isListed(lists: Lists | undefined): boolean {
  return lists?.allow !== undefined || (lists?.deny ?? []).length > 0
}

function formatLists(lists: Lists | undefined): string | null {
  if (lists?.allow !== undefined) return lists.allow.join(',')
  return lists?.deny === undefined ? null : `not ${lists.deny.join(',')}`
}

function applyBudgets(policy: Policy, { usdMicros }: SpendFacts, usage: PeriodUsage): readonly Applied[] {
  return budgetRules(policy).map(({ rule, period, maxMicros, maxCount }) => {
    const { usedMicros, count } = usage[period]
    return maxMicros === null
      ? { rule, limit: String(maxCount), used: String(count), requested: '1' }
      : {
          rule,
          limit: formatUsd(maxMicros),
          used: formatUsd(usedMicros),
          requested: usdMicros === null ? null : formatUsd(usdMicros),
        }
  })
}

/** Without a result, the decision ended before the owner would have been asked. */
function explainApproval(
  policy: Policy,
  spend: SpendFacts,
  { verdict, isApproved }: RecordedOutcome,
): readonly ExplainedRule[] {
  if (policy.approval === undefined) return []
  const isNeeded = needsApproval(policy, spend.usdMicros, spend.seller ?? null)
  const rule = {
    rule: 'approval' as const,
    limit: formatUsd(toUsdMicros(policy.approval.above)),
    used: null,
    requested: spend.usdMicros === null ? null : formatUsd(spend.usdMicros),
  }
  if (!isNeeded) return [{ ...rule, result: 'kept' }]
  if (verdict === 'approval_required') return [{ ...rule, result: 'asked' }]
  return isApproved ? [{ ...rule, result: 'approved' }] : []
}
