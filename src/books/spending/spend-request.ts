import type { OutflowWindow } from '../../../policies/aml/outflow-windows.ts'
import type { BudgetRule } from '../../../policies/budget.ts'
import type { Json } from '../../core/base/json.ts'
import type { SignatureNonce } from '../../core/base/principal.ts'
import type { Violation } from '../../core/failures/failure.ts'
import type { Stablecoin } from '../../core/money/money.ts'
import type { Value } from '../../core/money/shares.ts'
import type { Address, Authorization, SwapRoute } from '../../providers/chain/port.ts'
import type { IdempotentCall } from './idempotency.ts'

/**
 * Limits of a policy's counters: millionths of a USD per UTC day, and spends per UTC day. Null means no limit.
 * @property longer rules of the week and the month; absent: none.
 */
export interface SpendLimits {
  readonly dailyMaxMicros: bigint | null
  readonly dailyMaxCount: number | null
  readonly longer?: readonly BudgetRule[]
  /** Equal spends; absent: no limit. */
  readonly repeat?: RepeatLimit
}

/** Spends of equal category, amount and payee. */
export interface RepeatLimit {
  readonly count: number
  readonly seconds: number
}

/** Counters of an ancestor's policy. @property budgets rules of all its periods. @property cooldownSeconds of new payees. */
export interface PathLimits {
  readonly id: string
  readonly policyVersion: number
  readonly budgets: readonly BudgetRule[]
  readonly cooldownSeconds: number | null
  readonly repeat?: RepeatLimit | undefined
}

/**
 * A transfer's row, written with the hold of its money.
 * @property intentId signed intent, which the row uses up; null if none.
 * @property mac authentication code of the row: src/rails/wallets/transfers/transfer-mac.ts.
 */
export interface TransferRow {
  readonly id: string
  readonly token: Stablecoin
  readonly units: bigint
  /** Lower case. */
  readonly destination: Address
  readonly chain: string
  readonly authorization: Authorization
  readonly signer: 'sandbox' | 'passkey' | 'eoa' | 'agent'
  readonly payer: 'wallet' | 'escrow'
  /** Route of a swap, which the destination executes with the money; absent: a plain payment. */
  readonly route?: SwapRoute
  /** Present: it burns the money of the payment, by its own reservation. */
  readonly fundingId?: string
  /** Present: it is not sent until its money has arrived. */
  readonly state?: 'funding'
  readonly validUntil: Date
  readonly mac: string
  readonly intentId: string | null
  readonly at: Date
}

/**
 * An order's row, written with the hold of its money or shares. Money in cents, quantities in billionths of a share, prices in
 * nano-dollars.
 */
export interface OrderRow {
  readonly id: string
  readonly clientOrderId: string | null
  readonly asked: string
  readonly symbol: string
  readonly side: 'buy' | 'sell'
  readonly type: 'market' | 'limit'
  readonly notional: bigint
  /** Maximum quantity to sell; null for a buy. */
  readonly qty: bigint | null
  readonly limitPrice: bigint | null
  /** Share price when the order was placed. */
  readonly referencePrice: bigint
  readonly submittedAt: Date
}

/**
 * Money that a spend takes from another place, in smallest units.
 * @property id of its reservation. @property units what leaves the other place. @property needed what lacks at the place of the
 * spend; the rest is held there. @property row what its rail writes with the hold, as members of JSON text; absent: nothing.
 */
export interface SpendFunding {
  readonly id: string
  readonly place: string
  readonly units: bigint
  readonly needed: bigint
  readonly row?: string
}

export interface SpendRequest {
  /** A new `dec_…`. */
  readonly decisionId: string
  readonly accountId: string
  /**
   * Key that spends, with the version of the evaluated policy; null for a person's session. The owner's cap over all
   * keys is not included: the database reads it at decision time.
   */
  readonly key: {
    readonly id: string
    readonly policyVersion: number
    readonly limits: SpendLimits
    /** Its ancestors, root first, each of which judges and counts the spend. Absent: none. */
    readonly path?: readonly PathLimits[]
  } | null
  readonly policyHash: string | null
  /** The tool's name, such as `wallets.transfer`. */
  readonly operation: string
  /** Facts of the decision, for the record. */
  readonly facts: Json
  /** Violations of the policy's static rules. Any violation denies the spend; the counters add theirs. */
  readonly violations: readonly Violation[]
  /** Money to hold: the payment, or the shares being sold. */
  readonly money: Value
  /** Amount counted in budgets, in millionths of a USD; null when unknown, which any daily maximum denies. */
  readonly usdMicros: bigint | null
  /** Payee, in any letter case; null when unknown, which a cool-down denies. */
  readonly counterparty: string | null
  /** Seconds a key must wait from its first request to a new payee until it may pay; null: no wait. */
  readonly cooldownSeconds: number | null
  /** The owner must approve the spend if nothing else denies it. */
  readonly needsApproval: boolean
  /** The owner has approved the spend: it takes over the idempotency key of the call that got `approval_required`. */
  readonly isApproved: boolean
  /** Approval under which the spend runs. It overrules the violations that its owner saw, once. */
  readonly approvalId?: string | null
  /** Place of the money: a chain name or `bank`. Null: the money is not the account's, and nothing is held. */
  readonly place: string | null
  readonly idempotency: IdempotentCall | null
  readonly at: Date
  /** AML windows that judge and count the spend; none if absent. */
  readonly windows?: readonly OutflowWindow[]
  /**
   * Subject under which reviews of exactly this spend are stored, and the released review that it uses up; absent
   * when AML does not apply.
   */
  readonly review?: { readonly subject: string; readonly released: string | null } | null
  /** Row of the transfer that the spend is for, if it is to be written with the hold. */
  readonly transfer?: TransferRow | null
  /** Row of the order that the spend is for, if it is to be written with the hold. */
  readonly order?: OrderRow | null
  /** Row of the purchase that the spend is for, if it is to be written with the hold: JSON text, see `purchase_insert`. */
  readonly purchase?: string | null
  /**
   * Purse that pays where it has enough. Otherwise its place holds `chunk` for it, in smallest units, or the money of the
   * spend where it has less.
   */
  readonly purse?: { readonly id: string; readonly chunk: bigint; readonly isOnly?: boolean } | null
  /** Money of another place that moves to the place of the spend first. */
  readonly funding?: SpendFunding | null
  /**
   * Nonce that the signed request used up. The reserve's commit contains it: should the database that authenticated the
   * request fail, its successor knows the nonce of each spend that it knows.
   */
  readonly nonce?: SignatureNonce | undefined
  /** Authentication code of the expected decision. @see authenticatedReserve */
  readonly mac?: string
}
