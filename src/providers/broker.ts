/**
 * The broker: what can be bought, for how much, and orders. Quantities are billionths of a share, prices nano-dollars a share,
 * money is in cents. Adapters: `sandbox` (matches against a feed of its own), `alpaca` and `none`.
 */

import type { Json } from '../base/json.ts'

/** A stock or fund that is traded. */
export interface Instrument {
  readonly symbol: string
  readonly name: string
  /** Whether orders are taken now. */
  readonly tradable: boolean
}

/** A day order by what it may cost. @property id ours, unique for ever: the broker takes an id once. */
export interface BrokerOrder {
  readonly id: string
  readonly symbol: string
  readonly side: 'buy' | 'sell'
  /** Cents. A buy never costs more. */
  readonly notional: bigint
  /** What a sell gives up at most; null for a buy. */
  readonly qty: bigint | null
  /** Null: at the market. */
  readonly limitPrice: bigint | null
}

/**
 * How far the broker says an order came. @property id ours. @property filledValue billionths of a share times nano-dollars; 0 where
 * the broker names no price.
 */
export interface OrderReport {
  readonly id: string
  readonly symbol: string
  readonly side: 'buy' | 'sell'
  readonly status: 'accepted' | 'partially_filled' | 'filled' | 'canceled' | 'expired' | 'rejected'
  readonly filledQty: bigint
  readonly filledValue: bigint
  readonly filledAt: Date | null
  /** Why it was rejected. */
  readonly reason: string | null
}

/** A report that is none: a member is missing, or a number is none that can be. @property reported as it came. */
export interface UnreadableReport {
  readonly status: 'unreadable'
  readonly reported: Json
}

/** What became of placing. `refused`: the broker has not taken it and never will. */
export type PlacementResult =
  | { readonly status: 'placed'; readonly report: OrderReport | UnreadableReport }
  | { readonly status: 'refused'; readonly reason: string; readonly message: string }

/** Cash for the shares that somebody has at the end of the record date. Dates are `YYYY-MM-DD`, UTC. */
export interface Dividend {
  readonly symbol: string
  /** Nano-dollars. */
  readonly perShare: bigint
  readonly recordDate: string
  readonly payDate: string
}

/** The broker port. Every method but {@link Broker.place} throws Failure `provider_unavailable` where no answer can be had. */
export interface Broker {
  /** Only the sandbox's has shares that nobody paid for. */
  readonly name: 'sandbox' | 'alpaca' | 'none'
  /** Whether an account's orders are taken: securities that lie in one brokerage account belong to one owner. */
  isOpenTo(accountId: string): boolean
  /** Undefined: no such symbol. */
  instrument(symbol: string): Promise<Instrument | undefined>
  /** The last price of each symbol; those without one are left out. */
  quotes(symbols: readonly string[]): Promise<ReadonlyMap<string, bigint>>
  /** The price of each symbol at each moment, in the order of the moments. Moments rise. */
  history(
    symbols: readonly string[],
    moments: readonly Date[],
  ): Promise<ReadonlyMap<string, readonly bigint[]>>
  /** Placing the same id again changes nothing. @throws where it is not known whether the broker took it. */
  place(order: BrokerOrder): Promise<PlacementResult>
  /** Undefined: the broker has no such order. */
  find(id: string): Promise<OrderReport | UnreadableReport | undefined>
  /** Asks to cancel; one that has ended stays as it is. What became of it is for {@link Broker.find} to say. */
  cancel(id: string): Promise<void>
  /** Dividends by their record date, both ends included. @param from `YYYY-MM-DD`. */
  dividends(from: string, to: string): Promise<readonly Dividend[]>
}
