/**
 * Investing: orders for stocks and funds, positions, dividends and performance. May import base, ports, ledger, spending and
 * policies. Invariants: an order is a row before the broker hears of it; what it may cost or give up is held until the broker
 * has said how it ended; what was filled is booked once, in one transaction with the money.
 */
import type { Clock } from '../base/clock.ts'
import type { NewId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Broker } from '../providers/broker.ts'
import type { Database } from '../storage/database.ts'

/** Where shares are in the ledger, and the cash that pays for them. */
export const BROKER = 'broker'
export const BANK = 'bank'

/** What investing needs. */
export interface InvestingDependencies {
  readonly database: Database
  readonly broker: Broker
  readonly newId: NewId
  readonly clock: Clock
  readonly log: Log
}

/** `new`: it is not known yet whether the broker has it. */
export type OrderStatus =
  | 'new'
  | 'accepted'
  | 'partially_filled'
  | 'filled'
  | 'canceled'
  | 'rejected'
  | 'expired'

/** An order as it is stored. Money in cents, quantities in billionths of a share, prices in nano-dollars. */
export interface Order {
  readonly id: string
  readonly accountId: string
  /** That placed it; null: the account's owner. */
  readonly keyId: string | null
  readonly decisionId: string
  readonly clientOrderId: string | null
  readonly asked: string
  readonly symbol: string
  readonly side: 'buy' | 'sell'
  readonly type: 'market' | 'limit'
  readonly notional: bigint
  /** What a sell gives up at most. */
  readonly qty: bigint | null
  readonly limitPrice: bigint | null
  /** What a share was worth when it was ordered. */
  readonly referencePrice: bigint
  readonly status: OrderStatus
  readonly rejectReason: string | null
  readonly filledQty: bigint
  readonly filledCash: bigint
  readonly filledAvgPrice: bigint | null
  readonly cancelRequestedAt: Date | null
  readonly submittedAt: Date
  readonly filledAt: Date | null
  /** When it was looked at last. */
  readonly updatedAt: Date
}

/** Whether an order can still be filled. */
export function isOpenOrder({ status }: Pick<Order, 'status'>): boolean {
  return status === 'new' || status === 'accepted' || status === 'partially_filled'
}
