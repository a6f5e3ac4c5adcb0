import { z } from 'zod'
import { reasonMember } from '../../src/books/spending/spend-note.ts'
import { canonicalJson } from '../../src/core/base/json.ts'
import {
  amountMismatch,
  decimalAmount,
  decimalOf,
  decimalOfUnits,
  moneyOf,
} from '../../src/core/money/money.ts'
import { parsePrice, priceText, toShares } from '../../src/core/money/shares.ts'
import { type Context, requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { admitOrder } from '../../src/rails/investing/admit-order.ts'
import { findRepeatedOrder } from '../../src/rails/investing/find-repeated-order.ts'
import { BANK, BROKER, type Order } from '../../src/rails/investing/order.ts'
import { orderView, viewOrder } from '../../src/rails/investing/order-view.ts'
import { orderConflict, placeWritten } from '../../src/rails/investing/place-order.ts'
import { findOrder, insertOrder, type OrderOwner } from '../../src/rails/investing/store.ts'

/** 0.01 and 1,000,000 USD per share. */
const MIN_PRICE = parsePrice('0.01')
const MAX_PRICE = parsePrice('1000000')

const orderRequest = z
  .strictObject({
    symbol: z
      .string()
      .trim()
      .toUpperCase()
      .regex(/^[A-Z0-9.]{1,12}$/, 'must be a ticker, such as VTI')
      .describe('Ticker, such as `VTI`.'),
    side: z.enum(['buy', 'sell']).describe('Direction.'),
    notional: decimalAmount
      .optional()
      .describe(
        'USD, 1.00 to 1,000,000.00. A limit sell counts shares at the higher of limit and last quote. 1.00 sells all of a holding worth less.',
      ),
    qty: decimalAmount
      .optional()
      .describe('Shares, in place of `notional`. A market buy spends what they cost at the last quote.'),
    type: z
      .enum(['market', 'limit'])
      .default('market')
      .describe('`limit` waits for its price until the session ends.'),
    limitPrice: decimalAmount
      .optional()
      .describe('USD per share: maximum for a buy, minimum for a sell. Default: the last quote.'),
    clientOrderId: z
      .string()
      .regex(/^[\x21-\x7e]{1,64}$/, 'must be 1 to 64 visible ASCII characters')
      .optional()
      .describe('Your own id, for one order only.'),
    ...reasonMember,
  })
  .superRefine(({ notional, qty, type, limitPrice }, context) => {
    const refuse = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message })
    if (notional === undefined && qty === undefined) refuse('notional', 'is required, or qty')
    if (notional !== undefined && qty !== undefined)
      refuse('qty', 'is in place of notional: send one of both')
    const misfit = notional === undefined ? undefined : amountMismatch(notional, 'USD')
    if (misfit !== undefined) refuse('notional', misfit)
    if ((/\.(\d+)$/.exec(qty ?? '')?.[1]?.length ?? 0) > 9) refuse('qty', 'has more than 9 fraction digits')
    if (limitPrice === undefined) return
    if (type !== 'limit') refuse('limitPrice', 'is allowed for limit orders only')
    const price = parsePrice(limitPrice)
    if (price < MIN_PRICE || price > MAX_PRICE) refuse('limitPrice', 'must be from 0.01 to 1000000')
    const digits = /\.(\d+)$/.exec(limitPrice)?.[1]?.length ?? 0
    const max = limitPrice.startsWith('0.') ? 4 : 2
    if (digits > max) refuse('limitPrice', `has ${digits} fraction digits; a price of this size has ${max}`)
  })
  // Trailing zeros are removed, so that equal requests compare equal.
  .transform((order) => ({
    ...order,
    notional: order.notional === undefined ? undefined : decimalOf(moneyOf('USD', order.notional)),
    qty: order.qty === undefined ? undefined : decimalOfUnits(parsePrice(order.qty), 9),
    limitPrice: order.limitPrice === undefined ? undefined : priceText(parsePrice(order.limitPrice)),
  }))

type OrderRequest = z.output<typeof orderRequest>

/** Content that must be equal for two requests with the same client order id. */
const encodeRequest = ({ symbol, side, notional, qty, type, limitPrice }: OrderRequest) =>
  canonicalJson({
    symbol,
    side,
    ...(notional === undefined
      ? { qty: parsePrice(qty ?? '0') }
      : { notional: moneyOf('USD', notional).units }),
    type,
    limitPrice: limitPrice === undefined ? null : parsePrice(limitPrice),
  })

function toOwner(context: Pick<Context, 'principal'>): OrderOwner {
  const caller = requireCaller(context)
  return { accountId: caller.account.id, keyId: caller.kind === 'key' ? caller.key.id : null }
}

const placedOrder = orderView.extend({
  next: z.string().nullable().describe('How to follow an open order; null once it has ended.'),
})

/** An order with the way to follow it. */
function viewPlacedOrder(order: Order): z.input<typeof placedOrder> {
  const shown = viewOrder(order)
  const isOpen = shown.status === 'accepted' || shown.status === 'partially_filled'
  const next = `Read GET /api/investing/orders every minute until ${shown.id} is no longer open; DELETE /api/investing/orders/${shown.id} cancels the rest.`
  return { ...shown, next: isOpen ? next : null }
}

const units = z.string().regex(/^\d+$/).nullable()

export default defineTool({
  name: 'investing.order',
  title: 'Buy or sell a stock or fund',
  summary:
    'Buy or sell a stock or ETF for an amount of USD or a number of shares, at the market or with a limit.',
  description:
    'Use it when the owner asked for this trade; read GET /api/investing/portfolio first. A buy spends USD cash only, no stablecoins, and holds it until the order ends; a sell holds shares. Category `invest`. `next` says how to follow an open order. After a timeout repeat with the same idempotency key.',
  restDescription:
    '`order_rejected`: see the detail and correct the order. `insufficient_funds`: receive USD, sell, or order less.',
  route: 'POST /api/investing/order',
  who: 'account',
  scopes: ['investing:trade'],
  effect: 'spend',
  proof: 'step-up',
  mcp: true,
  rail: 'investing',
  input: orderRequest,
  output: placedOrder,
  failures: [
    'insufficient_funds',
    'order_rejected',
    'policy_denied',
    'approval_required',
    'approval_rejected',
    'rates_unavailable',
    'provider_unavailable',
    'conflict',
  ],
  example: { symbol: 'VTI', side: 'buy', notional: '10' },
  facts: z.strictObject({ limitPrice: units, qty: units, referencePrice: z.string().regex(/^\d+$/) }),
  spend: async (context, input) => {
    const { symbol, side, type, clientOrderId } = input
    const owner = toOwner(context)
    if (clientOrderId !== undefined) {
      const named = await findOrder(context.database, { ...owner, clientOrderId })
      if (named !== undefined && named.asked !== encodeRequest(input)) throw orderConflict(named)
      if (named !== undefined) return { repeats: named.decisionId }
    }
    const limit = input.limitPrice === undefined ? null : parsePrice(input.limitPrice)
    const size =
      input.notional === undefined
        ? { qty: parsePrice(input.qty ?? '0') }
        : { notional: moneyOf('USD', input.notional) }
    const admitted = await admitOrder(context, {
      accountId: owner.accountId,
      symbol,
      side,
      type,
      size,
      limitPrice: limit,
    })
    const { notional: money, limitPrice, qty, referencePrice } = admitted
    return {
      category: 'invest',
      money,
      place: side === 'buy' ? BANK : BROKER,
      chain: null,
      counterparty: null,
      symbol,
      ...(side === 'buy' || qty === null ? {} : { holding: toShares(symbol, qty) }),
      order: {
        row: {
          id: context.newId('ord', context.now),
          clientOrderId: clientOrderId ?? null,
          asked: encodeRequest(input),
          symbol,
          side,
          type,
          notional: money.units,
          qty,
          limitPrice,
          referencePrice,
          submittedAt: context.now,
        },
        // A row is placed even if its process ends. It is written with the hold only where a repeat finds it.
        isWritten: context.idempotencyKey !== null || clientOrderId !== undefined,
      },
      fundsHint:
        side === 'buy'
          ? 'Buys are paid from USD cash only: tell the owner to add USD.'
          : 'Read GET /api/investing/portfolio for your holdings; shares in open sells are not available.',
      facts: {
        limitPrice: limitPrice?.toString() ?? null,
        qty: qty?.toString() ?? null,
        referencePrice: referencePrice.toString(),
      },
    }
  },
  run: async (context, _input, { decisionId, order, written }) => {
    if (order === undefined) throw new Error('an order has no plan')
    const { row, isWritten } = order
    const placed = { ...toOwner(context), decisionId, row }
    const inserted = isWritten ? written !== null : await insertOrder(context.database, placed)
    return viewPlacedOrder(await placeWritten(context, placed, inserted))
  },
  recall: async (context, { clientOrderId = null }, { decisionId }) => {
    const order = await findRepeatedOrder(context, { ...toOwner(context), decisionId, clientOrderId })
    return order === null ? null : viewPlacedOrder(order)
  },
})
