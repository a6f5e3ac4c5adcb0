import type { OutflowWindow } from '../../../policies/aml/outflow-windows.ts'
import { type Screening, screeningViolation } from '../../../policies/aml/screening.ts'
import { needsApproval } from '../../../policies/approval.ts'
import { budgetRules } from '../../../policies/budget.ts'
import { noPolicy } from '../../../policies/decision.ts'
import { evaluate } from '../../../policies/evaluate.ts'
import type { Policy, SpendCategory } from '../../../policies/policy.ts'
import type { SellerFacts } from '../../../policies/spend.ts'
import { toUsdMicros } from '../../../policies/usd.ts'
import { type Json, toJson } from '../../core/base/json.ts'
import type { AccessKey } from '../../core/base/principal.ts'
import { type Money, toDecimal } from '../../core/money/money.ts'
import type { Shares } from '../../core/money/shares.ts'
import type { UsdValue } from '../../core/money/usd-value.ts'
import type { OrderRow, SpendRequest, TransferRow } from './spend-request.ts'

/** An account that spends, by a key and its policy; a person's session has neither. */
export interface Spender {
  readonly accountId: string
  readonly key: Pick<AccessKey, 'id' | 'policyVersion' | 'policyHash'> | null
  readonly policy: Policy | null
}

/** A spend as rails describe it. @property place where the money is held, such as a chain's name; null: nothing is held. */
export interface PlannedSpend {
  readonly category: SpendCategory
  readonly money: Money
  readonly place: string | null
  readonly chain: string | null
  readonly counterparty: string | null
  /** The asset the policy judges, where it is not the one of `money`: a card's USD purchase paid from USDC. */
  readonly asset?: string
  readonly mcc?: string | null
  readonly symbol?: string | null
  /** Held in place of the money: shares that are sold. */
  readonly holding?: Shares
  readonly aml?: {
    readonly screening: Screening
    readonly subject: string
    readonly releasedReview: string | null
    readonly windows: readonly OutflowWindow[]
  }
  /** The transfer that the spend is for. @property isWritten the reserve writes its row, with the hold. */
  readonly transfer?: { readonly buildRow: (decisionId: string) => TransferRow; readonly isWritten: boolean }
  /** The order that the spend is for. @property isWritten the reserve writes its row, with the hold. */
  readonly order?: { readonly row: OrderRow; readonly isWritten: boolean }
  /** Purse that pays: see {@link SpendRequest}. */
  readonly purse?: NonNullable<SpendRequest['purse']>
  /** Seller of a purchase, and what the account remembers of it. */
  readonly seller?: SellerFacts
  readonly facts: unknown
}

/** The facts of a spend that a policy's static rules judge. */
export function policyFacts(spend: PlannedSpend, usdMicros: bigint | null) {
  const { category, money, asset = money.asset, chain, counterparty, mcc = null, symbol = null } = spend
  return { category, asset, usdMicros, chain, counterparty, mcc, symbol }
}

/**
 * Builds the request to reserve a spend. Only the policy's static rules and AML screening are decided in it; the counters are
 * the database's.
 * @param approvedBy the approval under which the owner has this call run; null: none.
 */
export function buildSpendRequest({
  operation,
  spender: { accountId, key, policy },
  spend,
  value,
  idempotency,
  approvedBy,
  decisionId,
  nonce,
  now,
}: {
  readonly operation: string
  readonly spender: Spender
  readonly spend: PlannedSpend
  readonly value: UsdValue
  readonly idempotency: SpendRequest['idempotency']
  readonly approvedBy: string | null
  readonly decisionId: string
  readonly nonce?: SpendRequest['nonce']
  readonly now: Date
}): Omit<SpendRequest, 'facts'> & { readonly facts: Readonly<Record<string, Json>> } {
  const {
    money,
    place,
    counterparty,
    holding,
    aml,
    transfer,
    order,
    purse = null,
    seller = null,
    facts: found,
  } = spend
  const { rate, usdMicros } = value
  const facts = policyFacts(spend, usdMicros)
  const isScreenedOut = aml !== undefined && aml.screening.result !== 'clear'
  return {
    decisionId,
    accountId,
    key: key === null ? null : { id: key.id, policyVersion: key.policyVersion, limits: toLimits(policy) },
    policyHash: key?.policyHash ?? null,
    operation,
    facts: {
      ...facts,
      amount: toDecimal(money),
      usdRate: rate,
      usdMicros: String(usdMicros),
      approvalId: approvedBy,
      ...(seller === null ? {} : { seller: toJson(seller) }),
      found: toJson(found),
    },
    violations: [
      ...(policy !== null ? evaluate(policy, { ...facts, seller }, now) : key === null ? [] : [noPolicy]),
      ...(isScreenedOut ? [screeningViolation(aml.screening)] : []),
    ],
    money: holding ?? money,
    usdMicros,
    counterparty,
    cooldownSeconds: policy?.counterparties?.newPayeeCooldownSec ?? null,
    needsApproval: policy !== null && approvedBy === null && needsApproval(policy, usdMicros, seller),
    isApproved: approvedBy !== null,
    approvalId: approvedBy,
    place,
    idempotency,
    nonce,
    at: now,
    windows: aml?.windows ?? [],
    review: aml === undefined ? null : { subject: aml.subject, released: aml.releasedReview },
    transfer: transfer?.isWritten === true ? transfer.buildRow(decisionId) : null,
    order: order?.isWritten === true ? order.row : null,
    purse,
  }
}

function toLimits(policy: Policy | null) {
  return {
    dailyMaxMicros: policy === null ? 0n : toUsdMicros(policy.dailyBudget.max),
    dailyMaxCount: policy?.dailyBudget.maxCount ?? null,
    longer: policy === null ? [] : budgetRules(policy).filter(({ period }) => period !== 'day'),
  }
}
