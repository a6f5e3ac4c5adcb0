/** Cancels an order: remembered first, so that it ends even where the broker cannot be reached now. */
import { Failure } from '../failures/failure.ts'
import { type InvestingDependencies, isOpenOrder, type Order } from './order.ts'
import { resumeOrder } from './resume-order.ts'
import { findOrder, type OrderOwner, requestCancel } from './store.ts'

/**
 * Cancels what is not filled yet; canceling again changes nothing.
 * @throws Failure `not_found`, `conflict` where it has ended otherwise, `provider_unavailable` where it is canceled later.
 */
export async function cancelOrder(
  investing: InvestingDependencies,
  { accountId, keyId, id, at }: OrderOwner & { id: string; at: Date },
): Promise<Order> {
  const { database } = investing
  const order = await findOrder(database, { accountId, id })
  const isOwn = order !== undefined && (keyId === null || order.keyId === keyId)
  if (!isOwn) throw new Failure('not_found', `There is no order ${id} of yours.`)
  if (order.status === 'canceled') return order
  if (!isOpenOrder(order)) throw ended(order)
  await requestCancel(database, id, at)
  const after = await resumeOrder(investing, { ...order, cancelRequestedAt: at })
  if (after.status !== 'canceled' && !isOpenOrder(after)) throw ended(after)
  return after
}

function ended({ id, status }: Order): Failure {
  return new Failure('conflict', `Order ${id} is ${status}; it cannot be canceled any more.`, {
    reason: status,
    isFinal: true,
    hint: 'Read it with GET /api/investing/orders; a filled order is undone by one the other way.',
  })
}
