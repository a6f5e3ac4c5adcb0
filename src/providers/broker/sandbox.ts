/**
 * The sandbox broker: a market that matches orders. The book is in the database and prices follow from the clock, so
 * that any process can advance any order with the same fills.
 */
import type { Selectable } from 'kysely'
import type { Clock } from '../../core/base/clock.ts'
import type { Connection, Database, Statement } from '../../storage/database.ts'
import type { SandboxOrderTable } from '../../storage/schema.ts'
import type { Broker, BrokerOrder, OrderReport } from './port.ts'
import { dividendsBetween } from './sandbox-dividends.ts'
import { createFeed, type Feed } from './sandbox-feed.ts'
import { instruments } from './sandbox-instruments.ts'
import { type BookedOrder, isOpen, matchUntil } from './sandbox-match.ts'
import { findSession, lastTraded, type MarketHours } from './sandbox-sessions.ts'

/** Dependencies of the market. @property feed prices; by default the standard sandbox feed. */
export interface SandboxBrokerOptions {
  readonly database: Database
  readonly clock: Clock
  readonly hours: MarketHours
  readonly feed?: Feed
}

const names = new Map(instruments.map(([symbol, name]) => [symbol, name]))

export function createSandboxBroker({
  database,
  clock,
  hours,
  feed = createFeed(),
}: SandboxBrokerOptions): Broker {
  const priceAt = (symbol: string, at: Date) => feed(symbol, lastTraded(hours, at))
  const carry = (order: BookedOrder, now: Date) =>
    matchUntil(order, now, {
      priceAt: (at) => feed(order.symbol, at) ?? 0n,
      opensAt: findSession(hours, order.placedAt).opensAt,
    })
  const carryOn = (id: string, end: (order: BookedOrder) => BookedOrder) =>
    database.transaction(async (connection) => {
      const booked = await lockOrder(connection, id)
      if (booked === undefined || !isOpen(booked)) return booked
      const carried = end(carry(booked, clock()))
      await updateOrder(connection, carried)
      return carried
    })
  return {
    name: 'sandbox',
    accounts: null,
    instrument: async (symbol) => {
      const name = names.get(symbol)
      return name === undefined ? undefined : { symbol, name, tradable: true }
    },
    quotes: async (symbols) => mapPrices(symbols, (symbol) => priceAt(symbol, clock())),
    history: async (symbols, moments) =>
      mapPrices(symbols, (symbol) => {
        const prices = moments.map((at) => priceAt(symbol, at))
        return prices.every((price) => price !== undefined) ? prices : undefined
      }),
    place: async (order) => {
      if (!names.has(order.symbol))
        return {
          status: 'refused',
          reason: 'unknown_symbol',
          message: `${order.symbol} is not available for trading`,
        }
      const placedAt = clock()
      const placed = carry(
        newOrder(order, { placedAt, expiresAt: findSession(hours, placedAt).closesAt }),
        placedAt,
      )
      const report = (await insertOrder(database, placed))
        ? placed
        : await carryOn(order.id, (carried) => carried)
      if (report === undefined) throw new Error(`order ${order.id} is not in the book`)
      return { status: 'placed', report }
    },
    find: ({ id }) => carryOn(id, (carried) => carried),
    cancel: async ({ id }) => {
      await carryOn(id, (carried) => (isOpen(carried) ? { ...carried, status: 'canceled' } : carried))
    },
    dividends: async (from, to) => dividendsBetween(from, to),
  }
}

function mapPrices<Price>(
  symbols: readonly string[],
  read: (symbol: string) => Price | undefined,
): ReadonlyMap<string, Price> {
  return new Map(
    symbols.flatMap((symbol) => {
      const price = read(symbol)
      return price === undefined ? [] : [[symbol, price] as const]
    }),
  )
}

/** An order as it enters the book. */
function newOrder(
  { id, symbol, side, notional, qty, limitPrice, brokerageAccount }: BrokerOrder,
  { placedAt, expiresAt }: { placedAt: Date; expiresAt: Date },
): BookedOrder {
  return {
    id,
    symbol,
    side,
    notional,
    qty,
    limitPrice,
    brokerageAccount,
    status: 'accepted',
    reason: null,
    placedAt,
    expiresAt,
    // Matching starts with the second of the order itself.
    matchedAt: new Date(placedAt.getTime() - 1_000),
    filledQty: 0n,
    filledValue: 0n,
    filledAt: null,
  }
}

const insertOne: Statement = {
  name: 'sandbox_order_insert',
  text: `
    with asked as (
      select *, row_number() over (partition by r.id order by r.ordinality) = 1 as is_first
      from rows from (jsonb_to_recordset($1::jsonb) as (
        id text, symbol text, side text, notional bigint, qty bigint, limit_price bigint, status text, placed_at timestamptz,
        expires_at timestamptz, matched_at timestamptz, filled_qty bigint, filled_value numeric, filled_at timestamptz
      )) with ordinality as r
    ),
    inserted as (
      insert into sandbox_order
        (id, symbol, side, notional, qty, limit_price, status, placed_at, expires_at, matched_at, filled_qty, filled_value, filled_at)
      select id, symbol, side, notional, qty, limit_price, status, placed_at, expires_at, matched_at, filled_qty, filled_value, filled_at
      from asked where is_first order by id
      on conflict do nothing returning id
    )
    select a.is_first and i.id is not null as is_new
    from asked a left join inserted i on i.id = a.id
    order by a.ordinality`,
}

/** @returns false when the order is in the book already. */
async function insertOrder(database: Database, order: BookedOrder): Promise<boolean> {
  const { is_new } = await database.gather<{ is_new: boolean }>(
    insertOne,
    {
      id: order.id,
      symbol: order.symbol,
      side: order.side,
      notional: order.notional,
      qty: order.qty,
      limit_price: order.limitPrice,
      status: order.status,
      placed_at: order.placedAt,
      expires_at: order.expiresAt,
      matched_at: order.matchedAt,
      filled_qty: order.filledQty,
      filled_value: order.filledValue,
      filled_at: order.filledAt,
    },
    order.id,
  )
  return is_new
}

async function lockOrder(connection: Connection, id: string): Promise<BookedOrder | undefined> {
  const row = await connection.kysely
    .selectFrom('sandbox_order')
    .selectAll()
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst()
  return row === undefined ? undefined : parseBookedOrder(row)
}

async function updateOrder(connection: Connection, order: BookedOrder): Promise<void> {
  await connection.kysely
    .updateTable('sandbox_order')
    .set({
      status: order.status,
      matched_at: order.matchedAt,
      filled_qty: order.filledQty,
      filled_value: order.filledValue.toString(),
      filled_at: order.filledAt,
    })
    .where('id', '=', order.id)
    .execute()
}

const statuses: readonly OrderReport['status'][] = [
  'accepted',
  'partially_filled',
  'filled',
  'canceled',
  'expired',
]

function parseBookedOrder(row: Selectable<SandboxOrderTable>): BookedOrder {
  const status = statuses.find((known) => known === row.status)
  if (status === undefined) throw new Error(`the book has an order with the unknown status ${row.status}`)
  return {
    id: row.id,
    symbol: row.symbol,
    side: row.side === 'buy' ? 'buy' : 'sell',
    notional: row.notional,
    qty: row.qty,
    limitPrice: row.limit_price,
    brokerageAccount: null,
    status,
    reason: null,
    placedAt: row.placed_at,
    expiresAt: row.expires_at,
    matchedAt: row.matched_at,
    filledQty: row.filled_qty,
    filledValue: BigInt(row.filled_value),
    filledAt: row.filled_at,
  }
}
