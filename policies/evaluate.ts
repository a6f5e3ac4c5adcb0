/** Static rules of a spend policy. All are evaluated, so a denial lists every violation at once. */
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
import { seller } from './rules/seller.ts'
import { payeeChanged, priceChanged } from './rules/seller-changed.ts'
import { sellerRecord } from './rules/seller-record.ts'
import { symbol } from './rules/symbol.ts'
import { timeWindow } from './rules/time-window.ts'
import type { SpendFacts } from './spend.ts'

/** One static rule: returns the violation, or undefined. Pure and total. */
type Rule = (policy: Policy, spend: SpendFacts, now: Date) => Violation | undefined

const rules: readonly Rule[] = [
  perTransaction,
  category,
  asset,
  chain,
  counterparty,
  seller,
  payeeChanged,
  priceChanged,
  sellerRecord,
  mcc,
  symbol,
  timeWindow,
  notYetValid,
  expired,
]

/**
 * Finds every static rule of the policy that the spend violates. Budgets are evaluated where the money is reserved;
 * `budgetViolations` is their reference.
 */
export function evaluate(policy: Policy, spend: SpendFacts, now: Date): readonly Violation[] {
  return rules.flatMap((rule) => rule(policy, spend, now) ?? [])
}
