/** One order: broker, books. Called with its maximum cost or quantity already held. */

import { releaseSpend } from '../../books/spending/release.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { PlacementResult } from '../../providers/broker/port.ts'
import { buildRejection } from './admit-order.ts'
import { bookFirstReport } from './book-report.ts'
import { findBrokerageAccountId } from './brokerage-store.ts'
import { fundOrder } from './fund-order.ts'
import type { InvestingDependencies, Order } from './order.ts'
import { findOrder, type NewOrder } from './store.ts'

/**
 * Places an order whose row was written. If it is unknown whether the broker accepted it, returns its current state, and the
 * settle-orders job resumes it; the broker accepts an id once.
 * @param isWritten false where no row was written.
 * @throws Failure `order_rejected` when the broker rejected it (everything is released); `conflict` when its client
 * order id belongs to another order.
 */
export async function placeWritten(
  dependencies: InvestingDependencies,
  order: NewOrder,
  isWritten: boolean,
): Promise<Order> {
  if (!isWritten) return notInserted(dependencies, order)
  const { row, ...owner } = order
  const placed = await submitOrder(dependencies, {
    ...row,
    ...owner,
    ...nothingFilled,
    updatedAt: row.submittedAt,
  })
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

/**
 * Submits an order to the broker and books the answer; a buy is paid for first. Safe to repeat. An order that is not
 * paid for yet stays as it is.
 */
export async function submitOrder(dependencies: InvestingDependencies, order: Order): Promise<Order> {
  const { clock, log } = dependencies
  const askedAt = clock()
  const { id } = order
  const placement = await fundAndPlace(dependencies, order).catch((err: unknown) => {
    log.warn({ err, orderId: id }, 'it is unknown whether the broker accepted an order')
    return null
  })
  if (placement === null) return order
  if (placement.status === 'placed')
    return bookFirstReport(dependencies, order, { report: placement.report, askedAt })
  const report = endedUnfilled(order, 'rejected', placement.reason)
  return bookFirstReport(dependencies, order, { report, askedAt })
}

/** @returns null while the cash for a buy is on its way. */
async function fundAndPlace(
  dependencies: InvestingDependencies,
  order: Order,
): Promise<PlacementResult | null> {
  const { database, broker } = dependencies
  const { id, symbol, side, notional, qty, limitPrice } = order
  const brokerageAccount = await findBrokerageAccountId({ database, broker }, order.accountId)
  if (brokerageAccount !== null && side === 'buy') {
    const funding = await fundOrder(dependencies, order, brokerageAccount)
    if (funding === 'refused')
      return { status: 'refused', reason: 'not_funded', message: 'The broker refused the transfer of cash.' }
    if (funding !== 'executed') return null
  }
  return broker.place({ id, symbol, side, notional, qty, limitPrice, brokerageAccount })
}

/** Builds the report of an order that ended without a fill. */
export function endedUnfilled(
  { id, symbol, side }: Order,
  status: 'rejected' | 'canceled',
  reason: string | null,
) {
  return { id, symbol, side, status, reason, filledQty: 0n, filledValue: 0n, filledAt: null }
}

/** Error for an order that the broker rejected, the same for every call. */
export function rejectedOrder({ id, symbol, rejectReason }: Order): Failure {
  return buildRejection(
    rejectReason ?? 'rejected',
    `The broker rejected order ${id} for ${symbol}: ${rejectReason}.`,
  )
}

/** Handles an ended reservation or a reused client order id; releases what was held. */
async function notInserted(
  { database, clock }: InvestingDependencies,
  { decisionId, accountId, keyId, row: { clientOrderId, asked } }: NewOrder,
): Promise<Order> {
  await releaseSpend(database, { decisionId, at: clock() })
  const existing =
    clientOrderId === null ? undefined : await findOrder(database, { accountId, keyId, clientOrderId })
  if (existing?.asked === asked) return existing
  throw existing === undefined ? endedReservation() : orderConflict(existing)
}

function endedReservation(): Failure {
  return new Failure('conflict', 'The reservation of this order has ended; nothing was placed.', {
    hint: 'Send the request again.',
  })
}

/** Error for a client order id that already names another order. */
export function orderConflict({ id, clientOrderId }: Order): Failure {
  return new Failure('conflict', `The client order id ${clientOrderId} already belongs to order ${id}.`, {
    isFinal: true,
    hint: 'Use a new clientOrderId for a new order.',
  })
}
