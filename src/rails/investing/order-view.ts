/** An order as its owner sees it. */
import { z } from 'zod'
import { untrustedTextOrNull } from '../../core/base/untrusted-text.ts'
import { toDecimal } from '../../core/money/money.ts'
import { priceText, quantityText } from '../../core/money/shares.ts'
import type { Order } from './order.ts'

export const orderView = z.strictObject({
  id: z.string().describe('`ord_…`'),
  clientOrderId: z.string().nullable().describe('Order id chosen by the client; null if none.'),
  symbol: z.string().describe('Ticker.'),
  side: z.enum(['buy', 'sell']).describe('Direction.'),
  type: z
    .enum(['market', 'limit'])
    .describe('Order type; `limit` waits for its price until the session ends.'),
  notional: z.string().describe('Order amount in USD; a buy never costs more.'),
  qty: z.string().nullable().describe('Shares at most; null: a buy by amount.'),
  sizedAt: z.string().nullable().describe('USD per share at which `qty` is `notional`.'),
  status: z
    .enum(['accepted', 'filled', 'partially_filled', 'canceled', 'rejected', 'expired'])
    .describe('`accepted` and `partially_filled` are open: read GET /api/investing/orders for the outcome.'),
  filledQty: z.string().describe('Shares bought or sold so far, with nine decimals.'),
  filledAvgPrice: z.string().nullable().describe('Average USD per share; null before the first fill.'),
  limitPrice: z.string().nullable().describe('USD per share; null for a market order.'),
  rejectReason: untrustedTextOrNull('Reason for a rejection; null otherwise.'),
  submittedAt: z.string().describe('ISO 8601 UTC.'),
  filledAt: z
    .string()
    .nullable()
    .describe('When it was last filled, ISO 8601 UTC; null before the first fill.'),
})
orderView.register(z.globalRegistry, { id: 'Order' })

export function viewOrder(order: Order): z.input<typeof orderView> {
  const { filledAvgPrice, limitPrice, qty, status } = order
  return {
    id: order.id,
    clientOrderId: order.clientOrderId,
    symbol: order.symbol,
    side: order.side,
    type: order.type,
    notional: toDecimal({ asset: 'USD', units: order.notional }),
    qty: qty === null ? null : quantityText(qty),
    sizedAt: qty === null ? null : priceText(sizingPrice(order)),
    // The gateway places a `new` order eventually, whether or not the broker has it already.
    status: status === 'new' ? 'accepted' : status,
    filledQty: quantityText(order.filledQty),
    filledAvgPrice: filledAvgPrice === null ? null : priceText(filledAvgPrice),
    limitPrice: limitPrice === null ? null : priceText(limitPrice),
    rejectReason: order.rejectReason,
    submittedAt: order.submittedAt.toISOString(),
    filledAt: order.filledAt?.toISOString() ?? null,
  }
}

/** Price at which a quantity and an amount are the same order: a sell never gives up more shares than its amount is worth. */
function sizingPrice({ side, limitPrice, referencePrice }: Order): bigint {
  if (limitPrice === null) return referencePrice
  return side === 'buy' || limitPrice > referencePrice ? limitPrice : referencePrice
}
