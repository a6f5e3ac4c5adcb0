import type { Selectable } from 'kysely'
import { orderText } from '../../books/spending/request-text.ts'
import type { OrderRow } from '../../books/spending/spend-request.ts'
import type { Page } from '../../core/base/page.ts'
import type { Connection } from '../../storage/database.ts'
import type { InvestingOrderTable } from '../../storage/schema.ts'
import type { Order } from './order.ts'

/** A new order, without fills. */
export interface NewOrder extends OrderOwner {
  readonly decisionId: string
  readonly row: OrderRow
}

/**
 * Inserts an order if its hold is still reserved, so that this insert and a job that releases the hold exclude each
 * other.
 * @returns false when the reservation has ended or the caller used the client order id before.
 */
export async function insertOrder(
  database: Connection,
  { accountId, keyId, decisionId, row }: NewOrder,
): Promise<boolean> {
  const inserted = await database.call<{ decision_id: string }>(
    {
      name: 'investing_insert_order',
      text: `select o.decision_id
        from (select decision_id from reservation where decision_id = $2 and status = 'reserved' for update) r
          cross join lateral order_insert(array[$1::text], array[r.decision_id], array[$3::text], array[$4::jsonb]) o`,
    },
    [accountId, decisionId, keyId, orderText(row)],
  )
  return inserted.length > 0
}

/**
 * Identifies an order: by id within an account, by the client order id of a key (null: the owner), or by decision.
 */
type OrderName =
  | { readonly accountId: string; readonly id: string }
  | (OrderOwner & { readonly clientOrderId: string })
  | { readonly decisionId: string }

export async function findOrder(database: Connection, name: OrderName): Promise<Order | undefined> {
  let query = database.kysely.selectFrom('investing_order').selectAll()
  if ('accountId' in name) query = query.where('account_id', '=', name.accountId)
  if ('id' in name) query = query.where('id', '=', name.id)
  if ('clientOrderId' in name)
    query = query
      .where('client_order_id', '=', name.clientOrderId)
      .where('key_id', 'is not distinct from', name.keyId)
  if ('decisionId' in name) query = query.where('decision_id', '=', name.decisionId)
  const row = await query.executeTakeFirst()
  return row === undefined ? undefined : parseOrder(row)
}

/** Locks an order. @returns `isStopped`: it has an open alarm. */
export async function lockOrder(
  { kysely }: Connection,
  id: string,
): Promise<{ order: Order; isStopped: boolean }> {
  const row = await kysely
    .selectFrom('investing_order')
    .selectAll()
    .select(({ exists, selectFrom }) =>
      exists(
        selectFrom('alarm')
          .select('reason')
          .where('domain', '=', 'investing')
          .whereRef('object_id', '=', 'investing_order.id')
          .where('resolved_at', 'is', null),
      ).as('is_stopped'),
    )
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirstOrThrow()
  return { order: parseOrder(row), isStopped: row.is_stopped === true }
}

/** Owner of orders: an account, optionally restricted to one of its keys. */
export interface OrderOwner {
  readonly accountId: string
  readonly keyId: string | null
}

/** Lists orders, newest first: one more than the page's limit. */
export async function listOrders(
  database: Connection,
  { accountId, keyId, status, page }: OrderOwner & { status: 'open' | 'closed' | undefined; page: Page },
): Promise<Order[]> {
  const open = ['new', 'accepted', 'partially_filled'] as const
  let query = database.kysely
    .selectFrom('investing_order')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
  if (page.after !== null) query = query.where('id', '<', page.after)
  if (keyId !== null) query = query.where('key_id', '=', keyId)
  if (status === 'open') query = query.where('status', 'in', open)
  if (status === 'closed') query = query.where('status', 'not in', open)
  return (await query.execute()).map(parseOrder)
}

/** Records a cancel request for an open order. */
export async function requestCancel(database: Connection, id: string, at: Date): Promise<void> {
  await database.kysely
    .updateTable('investing_order')
    .set(({ fn, val }) => ({ cancel_requested_at: fn.coalesce('cancel_requested_at', val(at)) }))
    .where('id', '=', id)
    .execute()
}

/**
 * Claims open orders untouched since a moment, the longest untouched first; concurrent processes claim different
 * ones.
 * @param at current time.
 */
export async function claimOpenOrders(
  database: Connection,
  { before, at, limit }: { before: Date; at: Date; limit: number },
): Promise<Order[]> {
  const rows = await database.kysely
    .updateTable('investing_order')
    .set({ updated_at: at })
    .where('id', 'in', (query) =>
      query
        .selectFrom('investing_order')
        .select('id')
        .where('status', 'in', ['new', 'accepted', 'partially_filled'])
        .where('updated_at', '<', before)
        // An order stopped by an alarm waits for an administrator.
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom('alarm')
                .select('alarm.reason')
                .where('alarm.domain', '=', 'investing')
                .whereRef('alarm.object_id', '=', 'investing_order.id')
                .where('alarm.resolved_at', 'is', null),
            ),
          ),
        )
        .orderBy('updated_at')
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .returningAll()
    .execute()
  return rows.map(parseOrder)
}

function parseOrder(row: Selectable<InvestingOrderTable>): Order {
  return {
    id: row.id,
    accountId: row.account_id,
    keyId: row.key_id,
    decisionId: row.decision_id,
    clientOrderId: row.client_order_id,
    asked: row.asked,
    symbol: row.symbol,
    side: row.side,
    type: row.type,
    notional: row.notional,
    qty: row.qty,
    limitPrice: row.limit_price,
    referencePrice: row.reference_price,
    status: row.status,
    rejectReason: row.reject_reason,
    filledQty: row.filled_qty,
    filledCash: row.filled_cash,
    filledAvgPrice: row.filled_avg_price,
    cancelRequestedAt: row.cancel_requested_at,
    submittedAt: row.submitted_at,
    filledAt: row.filled_at,
    updatedAt: row.updated_at,
  }
}
