/** An order as its owner sees it. */
import { z } from 'zod'
import { untrustedTextOrNull } from '../base/untrusted-text.ts'
import { decimalOf } from '../money/money.ts'
import { priceText, quantityText } from '../money/shares.ts'
import type { Order } from './order.ts'

/** The view. */
export const orderView = z.strictObject({
  id: z.string().describe('`ord_…`'),
  clientOrderId: z.string().nullable().describe('The caller’s own name for the order.'),
  symbol: z.string().describe('Ticker.'),
  side: z.enum(['buy', 'sell']).describe('Which way.'),
  type: z.enum(['market', 'limit']).describe('`limit` waits for its price until the session ends.'),
  notional: z.string().describe('What the order is for, in USD: a buy never costs more.'),
  status: z
    .enum(['accepted', 'filled', 'partially_filled', 'canceled', 'rejected', 'expired'])
    .describe('`accepted` and `partially_filled` are open: read GET /api/investing/orders for the outcome.'),
  filledQty: z.string().describe('Shares that were bought or sold, nine decimals.'),
  filledAvgPrice: z.string().nullable().describe('USD a share, on average.'),
  limitPrice: z.string().nullable().describe('USD a share; null for a market order.'),
  rejectReason: untrustedTextOrNull('Why it was rejected.'),
  submittedAt: z.string().describe('ISO 8601 UTC.'),
  filledAt: z.string().nullable().describe('When it was last filled, ISO 8601 UTC.'),
})

/** {@link orderView} of an order. */
export function viewOrder(order: Order): z.input<typeof orderView> {
  const { filledAvgPrice, limitPrice, status } = order
  return {
    id: order.id,
    clientOrderId: order.clientOrderId,
    symbol: order.symbol,
    side: order.side,
    type: order.type,
    notional: decimalOf({ asset: 'USD', units: order.notional }),
    // Ours to carry on, whether the broker has it already or not.
    status: status === 'new' ? 'accepted' : status,
    filledQty: quantityText(order.filledQty),
    filledAvgPrice: filledAvgPrice === null ? null : priceText(filledAvgPrice),
    limitPrice: limitPrice === null ? null : priceText(limitPrice),
    rejectReason: order.rejectReason,
    submittedAt: order.submittedAt.toISOString(),
    filledAt: order.filledAt?.toISOString() ?? null,
  }
}
