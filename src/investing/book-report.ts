/** Books the progress of an order: money, shares, cost and the order's row in one transaction. */
import { isStopped, raiseAlarm } from '../alarms/alarms.ts'
import { toJson } from '../base/json.ts'
import { available, external } from '../ledger/accounts.ts'
import { post } from '../ledger/post.ts'
import { averagePrice, costRoundedUp, minimum, sharesOf, worthRoundedDown } from '../money/shares.ts'
import type { OrderReport, UnreadableReport } from '../providers/broker.ts'
import { releaseSpend } from '../spending/release.ts'
import { settlePart } from '../spending/take.ts'
import type { Connection, Statement } from '../storage/database.ts'
import { judgeReport } from './judge-report.ts'
import { BANK, BROKER, type InvestingDependencies, isOpenOrder, type Order } from './order.ts'
import { changePosition } from './positions.ts'
import { lockOrder, updateOrder } from './store.ts'

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
    const order = await lockOrder(connection, orderId)
    const stopped = { domain: 'investing', objectId: orderId } as const
    if (!isOpenOrder(order) || (await isStopped(connection, stopped))) return order
    const fault = judgeReport(order, report)
    if (fault === 'quantity_fell' && askedAt < order.updatedAt) return order
    if (fault !== null) {
      const reported = report.status === 'unreadable' ? report.reported : toJson(report)
      await raiseAlarm({ database: connection, log }, { ...stopped, reason: fault, reported, at })
      return order
    }
    if (report.status === 'unreadable') throw new Error('an unreadable report passed validation')
    return book(connection, order, { report, at, newId: dependencies.newId })
  })
}

/** Books a valid report. The caller holds the order's lock. */
async function book(
  connection: Connection,
  order: Order,
  { report, at, newId }: { report: OrderReport; at: Date } & Pick<InvestingDependencies, 'newId'>,
): Promise<Order> {
  const filled = filledBy(order, report)
  const ended = { ...order, ...changeBy(order, report, filled) }
  if (filled.qty === order.filledQty && ended.status === order.status) return order
  await lockReservationAndAccount(connection, order)
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
}

/**
 * Total filled so far. A buyer pays cents rounded up, at most the order's hold; a seller receives cents rounded down.
 */
function filledBy(order: Order, { filledQty, filledValue }: OrderReport): { qty: bigint; cash: bigint } {
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

// The row is locked before the account, because the lock of a subquery comes before what is selected from it.
const lockStatement: Statement = {
  name: 'investing_lock_parts',
  text: `select pg_advisory_xact_lock(hashtextextended($2, 0)) is null as locked
    from (select 1 from reservation where decision_id = $1 for update) r`,
}

/**
 * Follows the lock order of src/storage/sql/README.md: the order's row is already locked; reservation and account
 * come next.
 */
async function lockReservationAndAccount(
  connection: Connection,
  { decisionId, accountId }: Order,
): Promise<void> {
  await connection.call(lockStatement, [decisionId, accountId])
}

/** Moves the filled part of the hold to the broker and credits the proceeds. */
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
    const verdict = await settlePart(connection, parts)
    if (verdict !== 'taken') throw new Error(`a fill of ${id} cannot be booked: ${verdict}`)
  }
  if (got.units === 0n) return
  const destination = available(accountId, side === 'buy' ? BROKER : BANK)
  const postings = [{ source: external(BROKER), destination, money: got }]
  await post(connection, { id: `${part}:got`, kind: 'fill', reference: id, at, postings })
}
