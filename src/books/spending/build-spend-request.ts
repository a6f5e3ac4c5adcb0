import type { OutflowWindow } from '../../../policies/aml/outflow-windows.ts'
import { type Screening, screeningViolation } from '../../../policies/aml/screening.ts'
import { needsApproval } from '../../../policies/approval.ts'
import { budgetRules } from '../../../policies/budget.ts'
import { noPolicy, type Violation } from '../../../policies/decision.ts'
import { evaluate } from '../../../policies/evaluate.ts'
import type { Policy, SpendCategory } from '../../../policies/policy.ts'
import { countNeeded, type Quorum } from '../../../policies/quorum.ts'
import type { SellerFacts, SpendFacts } from '../../../policies/spend.ts'
import { toUsdMicros } from '../../../policies/usd.ts'
import { type Json, toJson } from '../../core/base/json.ts'
import type { AccessKey } from '../../core/base/principal.ts'
import { type Money, toDecimal } from '../../core/money/money.ts'
import type { Shares } from '../../core/money/shares.ts'
import type { UsdValue } from '../../core/money/usd-value.ts'
import type {
  OrderRow,
  PathLimits,
  RepeatLimit,
  SpendFunding,
  SpendRequest,
  TransferRow,
} from './spend-request.ts'

/** An account that spends, by a key and its policy; a person's session has neither. */
export interface Spender {
  readonly accountId: string
  readonly key: Pick<AccessKey, 'id' | 'policyVersion' | 'policyHash'> | null
  readonly policy: Policy | null
  /** Keys above it with their policies, root first. */
  readonly ancestors?: readonly JudgingAncestor[]
  /** How many people must agree to payments of the account; absent: nobody is asked by it. */
  readonly quorums?: readonly Quorum[] | undefined
}

export interface JudgingAncestor {
  readonly id: string
  readonly policyVersion: number
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
  /** Builds the row of the purchase that the spend is for, as JSON text; the reserve writes it, with the hold. */
  readonly buildPurchase?: (decisionId: string) => string
  /** Purse that pays: see {@link SpendRequest}. */
  readonly purse?: NonNullable<SpendRequest['purse']>
  /** Money of another place that moves to the place of the spend first. @property usdMicros what that costs, which is counted. */
  readonly funding?: Omit<SpendFunding, 'row'> & {
    readonly usdMicros: bigint
    readonly buildRow?: (decisionId: string) => string
    /** Transfer that moves it, from which chain; its row is written with the hold. */
    readonly burn?: { readonly from: string; readonly buildRow: (decisionId: string) => TransferRow }
  }
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
  spender: { accountId, key, policy, ancestors = [], quorums = [] },
  spend,
  value,
  idempotency,
  approvedBy,
  scheduledFor = null,
  task = null,
  contactId = null,
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
  /** Due time of a schedule whose calls the owner has agreed to: their amount is not asked for again. */
  readonly scheduledFor?: string | null
  /** Label of what the spend is for. */
  readonly task?: string | null
  /** Contact that the call named as its payee. */
  readonly contactId?: string | null
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
    buildPurchase,
    purse = null,
    funding,
    seller = null,
    facts: found,
  } = spend
  const { rate } = value
  const usdMicros = value.usdMicros + (funding?.usdMicros ?? 0n)
  const facts = policyFacts(spend, usdMicros)
  const isScreenedOut = aml !== undefined && aml.screening.result !== 'clear'
  return {
    decisionId,
    accountId,
    key:
      key === null
        ? null
        : {
            id: key.id,
            policyVersion: key.policyVersion,
            limits: toLimits(policy),
            ...(ancestors.length === 0 ? {} : { path: ancestors.map(toPathLimits) }),
          },
    policyHash: key?.policyHash ?? null,
    operation,
    facts: {
      ...facts,
      amount: toDecimal(money),
      usdRate: rate,
      usdMicros: String(usdMicros),
      approvalId: approvedBy,
      ...(task === null ? {} : { task }),
      ...(contactId === null ? {} : { contact: contactId }),
      ...(scheduledFor === null ? {} : { schedule: scheduledFor }),
      ...(seller === null ? {} : { seller: toJson(seller) }),
      found: toJson(found),
    },
    violations: [
      ...(key === null && policy === null
        ? []
        : judge({ id: key?.id ?? '', policy, ancestors }, { ...facts, seller }, now)),
      ...(isScreenedOut ? [screeningViolation(aml.screening)] : []),
    ],
    money: holding ?? money,
    usdMicros,
    counterparty,
    cooldownSeconds: policy?.counterparties?.newPayeeCooldownSec ?? null,
    needsApproval:
      approvedBy === null &&
      (countNeeded(quorums, usdMicros) > 0 ||
        [policy, ...ancestors.map((one) => one.policy)].some(
          (one) => one !== null && needsApproval(one, scheduledFor === null ? usdMicros : 0n, seller),
        )),
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
    purchase: buildPurchase?.(decisionId) ?? null,
    purse,
    funding: funding === undefined ? null : buildFunding(funding, decisionId),
  }
}

function buildFunding(
  { id, place, units, needed, buildRow }: NonNullable<PlannedSpend['funding']>,
  decisionId: string,
): SpendFunding {
  const funding = { id, place, units, needed }
  return buildRow === undefined ? funding : { ...funding, row: buildRow(decisionId) }
}

/**
 * The static rules that a key's spend violates: its own, and those of the keys above it. Below other keys each violation names the
 * key at which it failed.
 */
export function judge(
  {
    id,
    policy,
    ancestors = [],
  }: { id: string; policy: Policy | null; ancestors?: readonly JudgingAncestor[] },
  spend: SpendFacts,
  now: Date,
): readonly Violation[] {
  const find = (judging: Policy | null) => (judging === null ? [noPolicy] : evaluate(judging, spend, now))
  const own = find(policy)
  if (ancestors.length === 0) return own
  return [
    { id, violations: own },
    ...ancestors.map((one) => ({ id: one.id, violations: find(one.policy) })),
  ].flatMap(({ id: agentId, violations }) => violations.map((violation) => ({ ...violation, agentId })))
}

function toPathLimits({ id, policyVersion, policy }: JudgingAncestor): PathLimits {
  return {
    id,
    policyVersion,
    budgets: policy === null ? [] : budgetRules(policy),
    cooldownSeconds: policy?.counterparties?.newPayeeCooldownSec ?? null,
    ...toRepeat(policy),
  }
}

function toLimits(policy: Policy | null) {
  return {
    dailyMaxMicros: policy === null ? 0n : toUsdMicros(policy.dailyBudget.max),
    dailyMaxCount: policy?.dailyBudget.maxCount ?? null,
    longer: policy === null ? [] : budgetRules(policy).filter(({ period }) => period !== 'day'),
    ...toRepeat(policy),
  }
}

function toRepeat(policy: Policy | null): { readonly repeat?: RepeatLimit } {
  if (policy?.repeatLimit === undefined) return {}
  const { count, perSec: seconds } = policy.repeatLimit
  return { repeat: { count, seconds } }
}
