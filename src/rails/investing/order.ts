/**
 * Investing: orders for stocks and funds, positions, dividends and performance. May import base, ports, ledger,
 * spending and policies. Invariants: an order's row is written before the broker is called; its maximum cost or
 * quantity is held until the broker reports its end; each fill is booked once, in one transaction with the money.
 */

import type { OrderRow } from '../../books/spending/spend-request.ts'
import type { Clock } from '../../core/base/clock.ts'
import type { NewId } from '../../core/base/ids.ts'
import type { Log } from '../../core/base/log.ts'
import type { Broker } from '../../providers/broker/port.ts'
import type { Database } from '../../storage/database.ts'

/** Ledger places of shares and of the cash that pays for them. */
export const BROKER = 'broker'
export const BANK = 'bank'

export interface InvestingDependencies {
  readonly database: Database
  readonly broker: Broker
  readonly newId: NewId
  readonly clock: Clock
  readonly log: Log
}

/** `new`: it is unknown whether the broker has the order. */
export type OrderStatus =
  | 'new'
  | 'accepted'
  | 'partially_filled'
  | 'filled'
  | 'canceled'
  | 'rejected'
  | 'expired'

/** An order as stored. Money in cents, quantities in billionths of a share, prices in nano-dollars. */
export interface Order extends OrderRow {
  readonly accountId: string
  /** Key that placed the order; null for the account's owner. */
  readonly keyId: string | null
  readonly decisionId: string
  readonly status: OrderStatus
  readonly rejectReason: string | null
  readonly filledQty: bigint
  readonly filledCash: bigint
  readonly filledAvgPrice: bigint | null
  readonly cancelRequestedAt: Date | null
  readonly filledAt: Date | null
  /** When the order was last read or changed. */
  readonly updatedAt: Date
}

/** Checks whether an order can still be filled. */
export function isOpenOrder({ status }: Pick<Order, 'status'>): boolean {
  return status === 'new' || status === 'accepted' || status === 'partially_filled'
}
