/** The static rules of a spend policy, all of them: a denial names everything that is wrong at once, not the first thing. */
import type { Violation } from './decision.ts'
import type { Policy } from './policy.ts'
import { asset } from './rules/asset.ts'
import { category } from './rules/category.ts'
import { chain } from './rules/chain.ts'
import { counterparty } from './rules/counterparty.ts'
import { expired } from './rules/expired.ts'
import { mcc } from './rules/mcc.ts'
import { notYetValid } from './rules/not-yet-valid.ts'
import { perTransaction } from './rules/per-transaction.ts'
import { symbol } from './rules/symbol.ts'
import { timeWindow } from './rules/time-window.ts'
import type { SpendFacts } from './spend.ts'

/** One static rule: what the spend violates, or undefined where it keeps the rule. Pure and total. */
type Rule = (policy: Policy, spend: SpendFacts, now: Date) => Violation | undefined

const rules: readonly Rule[] = [
  perTransaction,
  category,
  asset,
  chain,
  counterparty,
  mcc,
  symbol,
  timeWindow,
  notYetValid,
  expired,
]

/**
 * Every static rule of the policy that the spend violates; empty where none is. The counters of the day are not here:
 * they are taken where the money is reserved, and `dailyViolations` is their reference.
 */
export function evaluate(policy: Policy, spend: SpendFacts, now: Date): readonly Violation[] {
  return rules.flatMap((rule) => rule(policy, spend, now) ?? [])
}
