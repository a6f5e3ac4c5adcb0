/**
 * Order matching of the sandbox market, second by second along the feed. Pure, so that every process gets the same
 * result.
 */
import { minimum, unitsForDown } from '../../core/money/shares.ts'
import type { BrokerOrder, OrderReport } from './port.ts'

/** Maximum fill per order and second: 10,000 USD. */
const DEPTH_CENTS = 1_000_000n

const SECOND = 1_000
const CENT = 10n ** 16n

export interface BookedOrder extends BrokerOrder, OrderReport {
  readonly placedAt: Date
  readonly expiresAt: Date
  /** Last second whose price was processed. */
  readonly matchedAt: Date
}

interface Market {
  readonly priceAt: (at: Date) => bigint
  readonly opensAt: Date
}

/** Advances an open order to a moment. An order still open at the end of its session expires. */
export function matchUntil(order: BookedOrder, now: Date, market: Market): BookedOrder {
  let carried = order
  const end = Math.min(now.getTime(), order.expiresAt.getTime() - 1)
  const begin = Math.max(order.matchedAt.getTime() + SECOND, market.opensAt.getTime())
  for (let at = Math.floor(begin / SECOND) * SECOND; at <= end && isOpen(carried); at += SECOND)
    carried = { ...fill(carried, new Date(at), market.priceAt(new Date(at))), matchedAt: new Date(at) }
  return isOpen(carried) && now >= order.expiresAt ? { ...carried, status: 'expired' } : carried
}

export function isOpen({ status }: OrderReport): boolean {
  return status === 'accepted' || status === 'partially_filled'
}

function fill(order: BookedOrder, at: Date, price: bigint): BookedOrder {
  const { side, limitPrice } = order
  const isMet = limitPrice === null || (side === 'buy' ? price <= limitPrice : price >= limitPrice)
  if (!isMet) return order
  const wanted = countWanted(order, price)
  const depth = unitsForDown(DEPTH_CENTS, price)
  const units = minimum(wanted, depth)
  const filled = {
    ...order,
    filledQty: order.filledQty + units,
    filledValue: order.filledValue + units * price,
    filledAt: at < order.placedAt ? order.placedAt : at,
  }
  return { ...filled, status: units === wanted ? 'filled' : 'partially_filled' }
}

/** Quantity still to fill: what the remaining money buys, or the rest of the quantity. */
function countWanted({ notional, qty, filledQty, filledValue }: BookedOrder, price: bigint): bigint {
  return qty === null ? (notional * CENT - filledValue) / price : qty - filledQty
}
