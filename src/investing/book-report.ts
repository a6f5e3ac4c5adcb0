/** Books how far an order came: money, shares, cost and the order's row in one transaction. */
import { available, external } from '../ledger/accounts.ts'
import { post } from '../ledger/post.ts'
import type { OrderReport } from '../providers/broker.ts'
import { averagePrice, costUp, least, sharesOf, worthDown } from '../shares.ts'
import { releaseSpend } from '../spending/release.ts'
import { takeSpend } from '../spending/take.ts'
import type { Connection } from '../storage/database.ts'
import { BANK, BROKER, type Investing, isOpenOrder, type Order } from './order.ts'
import { changePosition } from './positions.ts'
import { lockOrder, updateOrder } from './store.ts'

/**
 * Brings an order's books up to a report. The same report again changes nothing, and neither does one that is older; an order
 * that has ended never moves again.
 */
export async function bookReport(
  { database, clock, newId, log }: Omit<Investing, 'broker'>,
  orderId: string,
  report: OrderReport,
): Promise<Order> {
  const at = clock()
  return database.transaction(async (connection) => {
    const order = await lockOrder(connection, orderId)
    if (!isOpenOrder(order)) return order
    const filled = filledBy(order, report)
    if (filled.qty !== report.filledQty)
      log.error({ orderId, filledQty: report.filledQty.toString() }, 'the broker filled beyond the order')
    const ended = { ...order, ...changeBy(order, report, filled) }
    if (filled.qty === order.filledQty && ended.status === order.status) return order
    await lockAccount(connection, order)
    const part = { qty: filled.qty - order.filledQty, cash: filled.cash - order.filledCash }
    if (part.qty > 0n) {
      await moveFilled(connection, order, { ...part, at })
      await changePosition(connection, {
        id: newId('evt', at),
        accountId: order.accountId,
        symbol: order.symbol,
        qty: order.side === 'buy' ? part.qty : -part.qty,
        cash: part.cash,
        orderId: order.id,
        at,
      })
    }
    if (!isOpenOrder(ended)) await releaseSpend(connection, { decisionId: order.decisionId, at })
    await updateOrder(connection, order.id, ended, at)
    return ended
  })
}

/** What is filled in all, at most what the order holds. A buyer pays cents rounded up, a seller gets them rounded down. */
function filledBy(order: Order, { filledQty, filledValue }: OrderReport): { qty: bigint; cash: bigint } {
  if (filledQty <= order.filledQty) return { qty: order.filledQty, cash: order.filledCash }
  if (order.side === 'buy') {
    const cash = costUp(filledValue, 1n)
    return { qty: filledQty, cash: least(cash, order.notional) }
  }
  const qty = least(filledQty, order.qty ?? filledQty)
  return { qty, cash: worthDown(filledValue, 1n) }
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

/** In the order of migration 0012: the order's row is locked already, then come reservation and account. */
async function lockAccount(connection: Connection, { decisionId, accountId }: Order): Promise<void> {
  const reservation = 'select 1 as locked from reservation where decision_id = $1 for update'
  await connection.call({ name: 'investing_lock_reservation', text: reservation }, [decisionId])
  const account = 'select pg_advisory_xact_lock(hashtextextended($1, 0)) is null as locked'
  await connection.call({ name: 'investing_lock_account', text: account }, [accountId])
}

/** What was held goes to the broker; what it gave for it becomes available. */
async function moveFilled(
  connection: Connection,
  { id, accountId, decisionId, side, symbol, filledQty }: Order,
  { qty, cash, at }: { qty: bigint; cash: bigint; at: Date },
): Promise<void> {
  const part = `${id}:${filledQty + qty}`
  const shares = sharesOf(symbol, qty)
  const [given, got] = side === 'buy' ? [cash, shares] : [qty, { asset: 'USD' as const, units: cash }]
  if (given > 0n) {
    const parts = { decisionId, id: `${part}:given`, units: given, destination: external(BROKER), at }
    const verdict = await takeSpend(connection, parts)
    if (verdict !== 'taken') throw new Error(`a fill of ${id} cannot be booked: ${verdict}`)
  }
  if (got.units === 0n) return
  const destination = available(accountId, side === 'buy' ? BROKER : BANK)
  const postings = [{ source: external(BROKER), destination, money: got }]
  await post(connection, { id: `${part}:got`, kind: 'fill', reference: id, at, postings })
}
