/** Cancels orders. The request is recorded first, so that the order ends even if the broker is unreachable now. */
import { Failure } from '../../core/failures/failure.ts'
import { type InvestingDependencies, isOpenOrder, type Order } from './order.ts'
import { resumeOrder } from './resume-order.ts'
import { findOrder, type OrderOwner, requestCancel } from './store.ts'

/**
 * Cancels the unfilled part of an order. Idempotent.
 * @throws Failure `not_found`; `conflict` when the order has ended otherwise; `provider_unavailable` when it will be
 * canceled later.
 */
export async function cancelOrder(
  dependencies: InvestingDependencies,
  { accountId, keyId, id, at }: OrderOwner & { id: string; at: Date },
): Promise<Order> {
  const { database } = dependencies
  const order = await findOrder(database, { accountId, id })
  const isOwn = order !== undefined && (keyId === null || order.keyId === keyId)
  if (!isOwn) throw new Failure('not_found', `You have no order ${id}.`)
  if (order.status === 'canceled') return order
  if (!isOpenOrder(order)) throw buildEndedFailure(order)
  await requestCancel(database, id, at)
  const after = await resumeOrder(dependencies, { ...order, cancelRequestedAt: at })
  if (after.status !== 'canceled' && !isOpenOrder(after)) throw buildEndedFailure(after)
  return after
}

function buildEndedFailure({ id, status }: Order): Failure {
  return new Failure('conflict', `Order ${id} is ${status}; it can no longer be canceled.`, {
    reason: status,
    isFinal: true,
    hint: 'Read it with GET /api/investing/orders; to undo a filled order, place the opposite order.',
  })
}
