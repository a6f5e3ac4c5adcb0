/** Resumes an open order from its recorded state. */
import { bookReport } from './book-report.ts'
import { findBrokerageAccountId } from './brokerage-store.ts'
import { type InvestingDependencies, isOpenOrder, type Order } from './order.ts'
import { endedUnfilled, submitOrder } from './place-order.ts'

/** Longer than any broker request: an order unknown to the broker by then will never arrive. */
const GIVE_UP_MS = 5 * 60_000
/** An attempt to place an order, with the transfer that pays for it, is over before the order is given up. */
const LAST_ATTEMPT_MS = 4 * 60_000

/**
 * Reads an order from the broker and books it. An unknown order is placed again, because the broker accepts an id
 * once. After {@link GIVE_UP_MS} it is given up and its hold released.
 */
export async function resumeOrder(dependencies: InvestingDependencies, order: Order): Promise<Order> {
  const { broker, clock, log } = dependencies
  const askedAt = clock()
  const { id } = order
  const named = { id, brokerageAccount: await findBrokerageAccountId(dependencies, order.accountId) }
  const known = await broker.find(named)
  if (known !== undefined) {
    const isToEnd = order.cancelRequestedAt !== null && known.status !== 'unreadable' && isOpenOrder(known)
    if (isToEnd) await broker.cancel(named)
    const report = (isToEnd ? await broker.find(named) : undefined) ?? known
    return bookReport(dependencies, id, { report, askedAt })
  }
  if (order.status !== 'new') {
    log.error({ orderId: order.id, status: order.status }, 'the broker has lost an accepted order')
    return order
  }
  const age = clock().getTime() - order.submittedAt.getTime()
  if (age > GIVE_UP_MS) {
    const end = order.cancelRequestedAt === null ? 'rejected' : 'canceled'
    return bookReport(dependencies, id, {
      report: endedUnfilled(order, end, 'broker_unreachable'),
      askedAt,
    })
  }
  const isToPlace = order.cancelRequestedAt === null && age <= LAST_ATTEMPT_MS
  return isToPlace ? submitOrder(dependencies, order) : order
}
