/** Books the progress of an order: money, shares, cost and the order's row in one transaction. */
import { raiseAlarm } from '../../books/alarms/alarms.ts'
import { available, external } from '../../books/ledger/accounts.ts'
import { toJson } from '../../core/base/json.ts'
import { averagePrice, costRoundedUp, minimum, toShares, worthRoundedDown } from '../../core/money/shares.ts'
import type { OrderReport, UnreadableReport } from '../../providers/broker/port.ts'
import type { Connection, Statement } from '../../storage/database.ts'
import { judgeReport } from './judge-report.ts'
import { BANK, BROKER, type InvestingDependencies, isOpenOrder, type Order } from './order.ts'
import { lockOrder } from './store.ts'

/**
 * Books a report on an order that was just read or written, in one round trip if it is still the same. Otherwise as
 * {@link bookReport}.
 */
export async function bookFirstReport(
  dependencies: Omit<InvestingDependencies, 'broker'>,
  order: Order,
  told: { readonly report: OrderReport | UnreadableReport; readonly askedAt: Date },
): Promise<Order> {
  const { database, clock, newId } = dependencies
  const { report } = told
  if (isOpenOrder(order) && report.status !== 'unreadable' && judgeReport(order, report) === null) {
    const booked = await book(database, order, { report, at: clock(), newId })
    if (booked !== null && booked !== order) return booked
  }
  return bookReport(dependencies, order.id, told)
}

/**
 * Books a report on an order. Repeated and outdated reports change nothing, and a completed order never changes. An
 * invalid report raises an alarm, which stops the order with its holds until an administrator resolves it.
 */
export async function bookReport(
  dependencies: Omit<InvestingDependencies, 'broker'>,
  orderId: string,
  { report, askedAt }: { readonly report: OrderReport | UnreadableReport; readonly askedAt: Date },
): Promise<Order> {
  const { database, clock, log } = dependencies
  const at = clock()
  return database.transaction(async (connection) => {
    const { order, isStopped } = await lockOrder(connection, orderId)
    if (!isOpenOrder(order) || isStopped) return order
    const fault = judgeReport(order, report)
    if (fault === 'quantity_fell' && askedAt < order.updatedAt) return order
    if (fault !== null) {
      const reported = report.status === 'unreadable' ? report.reported : toJson(report)
      await raiseAlarm(
        { database: connection, log },
        { domain: 'investing', objectId: orderId, reason: fault, reported, at },
      )
      return order
    }
    if (report.status === 'unreadable') throw new Error('an unreadable report passed validation')
    const booked = await book(connection, order, { report, at, newId: dependencies.newId })
    if (booked === null) throw new Error(`order ${orderId} changed under its lock`)
    return booked
  })
}

/** Books a valid report, in one statement. @returns null if the order has changed since it was read; then nothing is booked. */
async function book(
  connection: Connection,
  order: Order,
  { report, at, newId }: { report: OrderReport; at: Date } & Pick<InvestingDependencies, 'newId'>,
): Promise<Order | null> {
  const filled = findFill(order, report)
  const ended = { ...order, ...changeBy(order, report, filled) }
  if (filled.qty === order.filledQty && ended.status === order.status) return order
  const part = { qty: filled.qty - order.filledQty, cash: filled.cash - order.filledCash }
  const isBooked = await bookPart(connection, order, { ended, part, changeId: newId('evt', at), at })
  return isBooked ? ended : null
}

/**
 * Total filled so far. A buyer pays cents rounded up, at most the order's hold; a seller receives cents rounded down.
 */
function findFill(order: Order, { filledQty, filledValue }: OrderReport): { qty: bigint; cash: bigint } {
  if (filledQty <= order.filledQty) return { qty: order.filledQty, cash: order.filledCash }
  if (order.side === 'buy') {
    const cash = costRoundedUp(filledValue, 1n)
    return { qty: filledQty, cash: minimum(cash, order.notional) }
  }
  return { qty: filledQty, cash: worthRoundedDown(filledValue, 1n) }
}

function changeBy(order: Order, report: OrderReport, { qty, cash }: { qty: bigint; cash: bigint }) {
  return {
    status: report.status,
    rejectReason: report.status === 'rejected' ? (report.reason ?? 'rejected') : null,
    filledQty: qty,
    filledCash: cash,
    filledAvgPrice:
      qty === order.filledQty ? order.filledAvgPrice : averagePrice(report.filledValue, report.filledQty),
    filledAt: report.filledAt,
  }
}

const bookStatement: Statement = {
  name: 'order_book_batch',
  text: 'select verdict from order_book_batch($1)',
}

/** Moves the filled part of the hold to the broker, credits the proceeds, and records the order's new state. */
async function bookPart(
  connection: Connection,
  order: Order,
  {
    ended,
    part: { qty, cash },
    changeId,
    at,
  }: { ended: Order; part: { qty: bigint; cash: bigint }; changeId: string; at: Date },
): Promise<boolean> {
  const { id, accountId, decisionId, side, symbol } = order
  const shares = toShares(symbol, qty)
  const isBuy = side === 'buy'
  const [given, got] = isBuy ? [cash, shares] : [qty, { asset: 'USD' as const, units: cash }]
  const { verdict } = await connection.gather<{ verdict: 'booked' | 'changed' }>(
    bookStatement,
    {
      was_status: order.status,
      was_filled_qty: order.filledQty,
      was_filled_cash: order.filledCash,
      was_canceling: order.cancelRequestedAt !== null,
      order: id,
      decision: decisionId,
      account: accountId,
      at,
      part: `${id}:${ended.filledQty}`,
      broker: external(BROKER),
      given,
      destination: available(accountId, isBuy ? BROKER : BANK),
      asset: got.asset,
      got: got.units,
      change: changeId,
      symbol,
      qty: isBuy ? qty : -qty,
      cash,
      ends: !isOpenOrder(ended),
      status: ended.status,
      reject_reason: ended.rejectReason,
      filled_qty: ended.filledQty,
      filled_cash: ended.filledCash,
      filled_avg_price: ended.filledAvgPrice,
      filled_at: ended.filledAt,
    },
    accountId,
  )
  return verdict === 'booked'
}
