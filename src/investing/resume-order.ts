/** Resumes an open order from its recorded state. */
import { bookReport } from './book-report.ts'
import { type InvestingDependencies, isOpenOrder, type Order } from './order.ts'
import { endedUnfilled, submitOrder } from './place-order.ts'

/** Longer than any broker request: an order unknown to the broker by then will never arrive. */
const GIVE_UP_MS = 5 * 60_000

/**
 * Reads an order from the broker and books it. An unknown order is placed again, because the broker accepts an id
 * once. After {@link GIVE_UP_MS} it is given up and its hold released.
 */
export async function resumeOrder(dependencies: InvestingDependencies, order: Order): Promise<Order> {
  const { broker, clock, log } = dependencies
  const askedAt = clock()
  const known = await broker.find(order.id)
  if (known !== undefined) {
    const isToEnd = order.cancelRequestedAt !== null && known.status !== 'unreadable' && isOpenOrder(known)
    if (isToEnd) await broker.cancel(order.id)
    const report = (isToEnd ? await broker.find(order.id) : undefined) ?? known
    return bookReport(dependencies, order.id, { report, askedAt })
  }
  if (order.status !== 'new') {
    log.error({ orderId: order.id, status: order.status }, 'the broker has lost an accepted order')
    return order
  }
  const isGivenUp = clock().getTime() - order.submittedAt.getTime() > GIVE_UP_MS
  if (isGivenUp) {
    const end = order.cancelRequestedAt === null ? 'rejected' : 'canceled'
    return bookReport(dependencies, order.id, {
      report: endedUnfilled(order, end, 'broker_unreachable'),
      askedAt,
    })
  }
  return order.cancelRequestedAt === null ? submitOrder(dependencies, order) : order
}
