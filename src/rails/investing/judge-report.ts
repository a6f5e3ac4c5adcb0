/**
 * Validates broker reports: a report must refer to the order, stay within the ordered and held amounts and a
 * plausible price, and never go back. Invalid reports are not booked.
 */

import { costRoundedUp, minimum, worthRoundedDown } from '../../core/money/shares.ts'
import type { OrderReport, UnreadableReport } from '../../providers/broker/port.ts'
import type { Order } from './order.ts'

/** Machine-readable reason why a report is invalid. */
export type ReportFault =
  | 'unreadable'
  | 'another_order'
  | 'another_symbol'
  | 'another_side'
  | 'quantity_fell'
  | 'quantity_beyond_order'
  | 'value_fell'
  | 'filled_nothing'
  | 'filled_without_price'
  | 'price_beyond_limit'
  | 'price_implausible'
  | 'cost_beyond_order'
  | 'rejected_after_fill'

/** Maximum plausible price change, up or down, during a day order. */
const MAX_PRICE_FACTOR = 3n
/** Tolerance for the broker's rounding of its average price: a hundredth of a percent. */
const ROUNDING = 10_000n
/** Tolerance in cents for a buy's computed cost beyond its notional. The buyer never pays more than the notional. */
const ROUNDING_CENTS = 1n

/** Validates a report. @returns null when valid. */
export function judgeReport(order: Order, report: OrderReport | UnreadableReport): ReportFault | null {
  if (report.status === 'unreadable') return 'unreadable'
  return judgeIdentity(order, report) ?? judgeProgress(order, report) ?? judgePrice(order, report)
}

function judgeIdentity(order: Order, { id, symbol, side }: OrderReport): ReportFault | null {
  if (id !== order.id) return 'another_order'
  if (symbol !== order.symbol) return 'another_symbol'
  return side === order.side ? null : 'another_side'
}

function judgeProgress(order: Order, { status, filledQty, filledValue }: OrderReport): ReportFault | null {
  if (filledQty < order.filledQty) return 'quantity_fell'
  if (order.qty !== null && filledQty > order.qty) return 'quantity_beyond_order'
  if (status === 'filled' && filledQty === 0n) return 'filled_nothing'
  if (status === 'rejected' && filledQty > 0n) return 'rejected_after_fill'
  if (filledQty > 0n && filledValue <= 0n) return 'filled_without_price'
  const cents =
    order.side === 'buy'
      ? minimum(costRoundedUp(filledValue, 1n), order.notional)
      : worthRoundedDown(filledValue, 1n)
  return cents < order.filledCash || (filledQty === 0n && filledValue !== 0n) ? 'value_fell' : null
}

function judgePrice(order: Order, { filledQty, filledValue }: OrderReport): ReportFault | null {
  if (filledQty === 0n) return null
  const { side, notional, limitPrice, referencePrice } = order
  const isAbove = (price: bigint) => filledValue * ROUNDING > filledQty * price * (ROUNDING + 1n)
  const isBelow = (price: bigint) => filledValue * ROUNDING < filledQty * price * (ROUNDING - 1n)
  if (limitPrice !== null && (side === 'buy' ? isAbove(limitPrice) : isBelow(limitPrice)))
    return 'price_beyond_limit'
  if (
    isAbove(referencePrice * MAX_PRICE_FACTOR) ||
    filledValue * MAX_PRICE_FACTOR < filledQty * referencePrice
  )
    return 'price_implausible'
  const maxCents = notional + notional / ROUNDING + ROUNDING_CENTS
  return side === 'buy' && costRoundedUp(filledValue, 1n) > maxCents ? 'cost_beyond_order' : null
}
