/** One order: row → broker → books. Called with what it may cost or give up already held. */
import { Failure } from '../failures/failure.ts'
import { releaseSpend } from '../spending/release.ts'
import { rejected } from './admit-order.ts'
import { bookReport } from './book-report.ts'
import type { InvestingDependencies, Order } from './order.ts'
import { findOrder, insertOrder, type NewOrder } from './store.ts'

/**
 * Places an order. Where it is not known whether the broker took it, it is answered as it stands and carried on by the
 * settle-orders job; the broker takes its id once.
 * @throws Failure `order_rejected` where the broker refused (everything is free again), `conflict` where its client order id is
 * that of another order.
 */
export async function placeOrder(
  investing: InvestingDependencies,
  asked: Omit<NewOrder, 'id'>,
): Promise<Order> {
  const { database, newId } = investing
  const order = { ...asked, id: newId('ord', asked.submittedAt) }
  if (!(await insertOrder(database, order))) return notInserted(investing, order)
  const placed = await submitOrder(investing, { ...order, ...nothingFilled, updatedAt: order.submittedAt })
  if (placed.status === 'rejected') throw rejectedOrder(placed)
  return placed
}

const nothingFilled = {
  status: 'new',
  rejectReason: null,
  filledQty: 0n,
  filledCash: 0n,
  filledAvgPrice: null,
  cancelRequestedAt: null,
  filledAt: null,
} as const

/** Tells the broker of an order and books what it answers. Safe to repeat. */
export async function submitOrder(investing: InvestingDependencies, order: Order): Promise<Order> {
  const { broker, clock, log } = investing
  const askedAt = clock()
  const { id, symbol, side, notional, qty, limitPrice } = order
  const placement = await broker
    .place({ id, symbol, side, notional, qty, limitPrice })
    .catch((err: unknown) => {
      log.warn({ err, orderId: id }, 'it is not known whether the broker took an order')
      return null
    })
  if (placement === null) return order
  if (placement.status === 'placed') return bookReport(investing, id, { report: placement.report, askedAt })
  return bookReport(investing, id, { report: endedUnfilled(order, 'rejected', placement.reason), askedAt })
}

/** The report of an order that ended without a fill. */
export function endedUnfilled(
  { id, symbol, side }: Order,
  status: 'rejected' | 'canceled',
  reason: string | null,
) {
  return { id, symbol, side, status, reason, filledQty: 0n, filledValue: 0n, filledAt: null }
}

/** The refusal of an order that the broker did not take, the first time and every time after. */
export function rejectedOrder({ id, symbol, rejectReason }: Order): Failure {
  return rejected(
    rejectReason ?? 'rejected',
    `The broker rejected order ${id} for ${symbol}: ${rejectReason}.`,
  )
}

/** The reservation has ended, or the caller used the client order id before: then what was held is given back here. */
async function notInserted(
  { database, clock }: InvestingDependencies,
  { decisionId, accountId, keyId, clientOrderId, asked }: NewOrder,
): Promise<Order> {
  await releaseSpend(database, { decisionId, at: clock() })
  const twin =
    clientOrderId === null ? undefined : await findOrder(database, { accountId, keyId, clientOrderId })
  if (twin?.asked === asked) return twin
  throw twin === undefined ? endedReservation() : orderConflict(twin)
}

function endedReservation(): Failure {
  return new Failure('conflict', 'The reservation of this order has ended; nothing was placed.', {
    hint: 'Send the request again.',
  })
}

/** A client order id that names another order already. */
export function orderConflict({ id, clientOrderId }: Order): Failure {
  return new Failure('conflict', `The client order id ${clientOrderId} is that of order ${id}.`, {
    isFinal: true,
    hint: 'Use a new clientOrderId for a new order.',
  })
}
