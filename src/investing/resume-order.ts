/** Carries an open order on from wherever it was left. */
import { bookReport } from './book-report.ts'
import { type InvestingDependencies, isOpenOrder, type Order } from './order.ts'
import { endedUnfilled, submitOrder } from './place-order.ts'

/** Longer than any request to a broker is under way: one that it has not heard of by then it never will. */
const GIVE_UP_MS = 5 * 60_000

/**
 * Asks the broker what became of an order and books it. One that it does not know is placed again: its id is taken once. One
 * that it does not know after {@link GIVE_UP_MS} is given up, and what it held is free.
 */
export async function resumeOrder(investing: InvestingDependencies, order: Order): Promise<Order> {
  const { broker, clock, log } = investing
  const askedAt = clock()
  const known = await broker.find(order.id)
  if (known !== undefined) {
    const isToEnd = order.cancelRequestedAt !== null && known.status !== 'unreadable' && isOpenOrder(known)
    if (isToEnd) await broker.cancel(order.id)
    const report = (isToEnd ? await broker.find(order.id) : undefined) ?? known
    return bookReport(investing, order.id, { report, askedAt })
  }
  if (order.status !== 'new') {
    log.error({ orderId: order.id, status: order.status }, 'the broker has lost an order that it had taken')
    return order
  }
  const isGivenUp = clock().getTime() - order.submittedAt.getTime() > GIVE_UP_MS
  if (isGivenUp) {
    const end = order.cancelRequestedAt === null ? 'rejected' : 'canceled'
    return bookReport(investing, order.id, {
      report: endedUnfilled(order, end, 'broker_unreachable'),
      askedAt,
    })
  }
  return order.cancelRequestedAt === null ? submitOrder(investing, order) : order
}
