/**
 * The broker: instruments, prices and orders, and the accounts that it keeps for persons. Quantities are billionths of a share, prices nano-dollars per share,
 * money cents. Adapters: `sandbox` (matches against its own feed), `alpaca` and `none`.
 */

import type { Json } from '../../core/base/json.ts'
import type { BrokerageAccounts } from './accounts.ts'

export interface Instrument {
  readonly symbol: string
  readonly name: string
  /** True if orders are currently accepted. */
  readonly tradable: boolean
}

/** A day order, sized by its quantity, or by its notional without one. @property id our id, unique forever; the broker accepts it once. */
export interface BrokerOrder {
  readonly id: string
  readonly symbol: string
  readonly side: 'buy' | 'sell'
  /** Cents; a buy never costs more. */
  readonly notional: bigint
  /** Maximum quantity; null for a buy by its notional. A buy has one only together with a limit. */
  readonly qty: bigint | null
  /** Null for a market order. */
  readonly limitPrice: bigint | null
  /** The owner's account at the broker; null when the broker keeps none. */
  readonly brokerageAccount: string | null
}

/** Identifies an order at the broker. @property id our id. */
export type BrokerOrderName = Pick<BrokerOrder, 'id' | 'brokerageAccount'>

/**
 * The broker's report on an order.
 * @property id our id.
 * @property filledValue billionths of a share times nano-dollars; 0 when the broker reports no price.
 */
export interface OrderReport {
  readonly id: string
  readonly symbol: string
  readonly side: 'buy' | 'sell'
  readonly status: 'accepted' | 'partially_filled' | 'filled' | 'canceled' | 'expired' | 'rejected'
  readonly filledQty: bigint
  readonly filledValue: bigint
  readonly filledAt: Date | null
  /** Reason for a rejection. */
  readonly reason: string | null
}

/** A report with a missing or invalid member. @property reported the raw report. */
export interface UnreadableReport {
  readonly status: 'unreadable'
  readonly reported: Json
}

/** Result of placing an order. `refused`: the broker has not accepted it and never will. */
export type PlacementResult =
  | { readonly status: 'placed'; readonly report: OrderReport | UnreadableReport }
  | { readonly status: 'refused'; readonly reason: string; readonly message: string }

/** Cash paid to the holders at the end of the record date. Dates are `YYYY-MM-DD`, UTC. */
export interface Dividend {
  readonly symbol: string
  /** Nano-dollars. */
  readonly perShare: bigint
  readonly recordDate: string
  readonly payDate: string
}

/**
 * The broker port. Every method except {@link Broker.place} throws Failure `provider_unavailable` when the broker
 * does not answer.
 */
export interface Broker {
  /** Only the sandbox grants shares without a purchase. */
  readonly name: 'sandbox' | 'alpaca' | 'none'
  /** Accounts of persons: each owns the securities bought for it. Null: the broker keeps none, and serves everybody. */
  readonly accounts: BrokerageAccounts | null
  /** @returns undefined for an unknown symbol. */
  instrument(symbol: string): Promise<Instrument | undefined>
  /** Reads the last price of each symbol; symbols without a price are omitted. */
  quotes(symbols: readonly string[]): Promise<ReadonlyMap<string, bigint>>
  /** Reads the price of each symbol at each moment. Moments must be in ascending order. */
  history(
    symbols: readonly string[],
    moments: readonly Date[],
  ): Promise<ReadonlyMap<string, readonly bigint[]>>
  /**
   * Places an order. Placing the same id again changes nothing.
   * @throws when it is unknown whether the broker accepted it.
   */
  place(order: BrokerOrder): Promise<PlacementResult>
  /** @returns undefined when the broker has no such order. */
  find(order: BrokerOrderName): Promise<OrderReport | UnreadableReport | undefined>
  /** Requests a cancellation; completed orders stay unchanged. {@link Broker.find} reports the outcome. */
  cancel(order: BrokerOrderName): Promise<void>
  /** Lists dividends by record date, inclusive. @param from `YYYY-MM-DD`. */
  dividends(from: string, to: string): Promise<readonly Dividend[]>
}
