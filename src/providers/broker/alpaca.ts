/**
 * Alpaca's Broker API with one trading account for each person. Orders are day orders: buys by `notional`, sells by
 * `qty`. Our id is the `client_order_id`, which Alpaca accepts once. Prices come from its market data.
 * @see https://docs.alpaca.markets/reference/createorderforaccount
 */

import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import type { Clock } from '../../core/base/clock.ts'
import { toJson } from '../../core/base/json.ts'
import { timers } from '../../core/base/timers.ts'
import { formatUnits } from '../../core/money/money.ts'
import { priceText } from '../../core/money/shares.ts'
import { createAlpacaAccounts } from './alpaca-accounts.ts'
import {
  type AlpacaRequestOptions,
  type Answer,
  createRequester,
  type Request,
  read,
  unavailable,
} from './alpaca-request.ts'
import { announcement, asset, bars, order, problem, toNanos, toStatus, trades } from './alpaca-shapes.ts'
import type {
  Broker,
  BrokerOrder,
  Dividend,
  Instrument,
  OrderReport,
  PlacementResult,
  UnreadableReport,
} from './port.ts'

/** Connection to Alpaca. */
export interface AlpacaOptions extends AlpacaRequestOptions {
  readonly url: string
  readonly dataUrl: string
  /** The firm's account, which pays for purchases and gets their proceeds. */
  readonly firmAccountId: string
  readonly clock: Clock
}

/** Cache lifetimes of instruments and calendars. */
const INSTRUMENT_MS = 10 * 60_000
const CALENDAR_MS = 60 * 60_000
const DAY = 86_400_000
/** Maximum pages of one history, against endless pagination. */
const MAX_PAGES = 20

export function createAlpacaBroker(options: AlpacaOptions): Broker {
  const request = createRequester(options)
  const base = options.url.replace(/\/+$/, '')
  const data = options.dataUrl.replace(/\/+$/, '')
  const time = { ttlResolution: 0, perf: { now: () => timers.monotonic() } }
  const instruments = new LRUCache<string, Instrument>({ max: 1_000, ttl: INSTRUMENT_MS, ...time })
  const calendars = new LRUCache<string, readonly Dividend[]>({ max: 10, ttl: CALENDAR_MS, ...time })
  return {
    name: 'alpaca',
    accounts: createAlpacaAccounts(request, { base, firmAccountId: options.firmAccountId }),
    instrument: async (symbol) => {
      const known = instruments.get(symbol)
      if (known !== undefined) return known
      const found = await findInstrument(request, base, symbol)
      if (found !== undefined) instruments.set(symbol, found)
      return found
    },
    quotes: (symbols) => latestTrades(request, data, symbols),
    history: (symbols, moments) => loadHistory(request, data, { symbols, moments }),
    place: (placed) => place(request, buildOrdersUrl(base, placed), placed),
    find: async (named) => {
      const found = await findOrder(request, buildOrdersUrl(base, named), named.id)
      return found === undefined ? undefined : parseReport(found)
    },
    cancel: async (named) => {
      const orders = buildOrdersUrl(base, named)
      const found = await findOrder(request, orders, named.id)
      const known = order.safeParse(found?.body)
      // An unreadable order raises an alarm instead.
      if (!known.success) return
      const { status } = await request('DELETE', `${orders}/${encodeURIComponent(known.data.id)}`)
      // 422: the order has already ended.
      if (![204, 207, 404, 422].includes(status)) throw unavailable(`answered ${status}`)
    },
    dividends: async (from, to) => {
      const known = calendars.get(`${from} ${to}`)
      if (known !== undefined) return known
      const found = await announcedDividends(request, base, { from, to })
      calendars.set(`${from} ${to}`, found)
      return found
    },
  }
}

function buildOrdersUrl(base: string, { brokerageAccount }: Pick<BrokerOrder, 'brokerageAccount'>): string {
  if (brokerageAccount === null) throw new Error('an order needs an account at the broker')
  return `${base}/v1/trading/accounts/${encodeURIComponent(brokerageAccount)}/orders`
}

async function place(request: Request, orders: string, placed: BrokerOrder): Promise<PlacementResult> {
  const answer = await request('POST', orders, {
    symbol: placed.symbol,
    side: placed.side,
    ...(placed.qty === null
      ? { notional: formatUnits(placed.notional, 2) }
      : { qty: formatUnits(placed.qty, 9) }),
    ...(placed.limitPrice === null
      ? { type: 'market' }
      : { type: 'limit', limit_price: priceText(placed.limitPrice) }),
    time_in_force: 'day',
    client_order_id: placed.id,
  })
  if (answer.status === 200) return { status: 'placed', report: parseReport(answer) }
  const { message } = problem.parse(answer.body)
  if (answer.status === 422 && /client_order_id/.test(message)) {
    const known = await findOrder(request, orders, placed.id)
    if (known !== undefined) return { status: 'placed', report: parseReport(known) }
  }
  const reasons: Readonly<Record<number, string>> = { 403: 'forbidden_by_broker', 422: 'invalid_for_broker' }
  const reason = reasons[answer.status]
  // Any other answer leaves it unknown whether the order was placed.
  if (reason === undefined) throw unavailable(`answered ${answer.status} to an order`)
  return { status: 'refused', reason, message }
}

async function findOrder(request: Request, orders: string, id: string): Promise<Answer | undefined> {
  const answer = await request(
    'GET',
    `${orders}:by_client_order_id?client_order_id=${encodeURIComponent(id)}`,
  )
  if (answer.status === 404) return undefined
  if (answer.status !== 200) throw unavailable(`answered ${answer.status} with an unexpected body`)
  return answer
}

/** Parses a report. An unreadable one is returned as such, because a retry would not change it. */
function parseReport({ body }: Answer): OrderReport | UnreadableReport {
  const parsed = order.safeParse(body)
  if (!parsed.success) return { status: 'unreadable', reported: toJson(body) }
  const { filled_qty: filledQty, filled_avg_price: price, filled_at: filledAt, status } = parsed.data
  return {
    id: parsed.data.client_order_id,
    symbol: parsed.data.symbol,
    side: parsed.data.side,
    status: toStatus(status, filledQty),
    filledQty,
    filledValue: filledQty * (price ?? 0n),
    filledAt,
    reason: status === 'rejected' ? 'rejected_by_broker' : null,
  }
}

async function findInstrument(
  request: Request,
  base: string,
  symbol: string,
): Promise<Instrument | undefined> {
  const answer = await request('GET', `${base}/v1/assets/${encodeURIComponent(symbol)}`)
  if (answer.status === 404 || answer.status === 422) return undefined
  const { name, tradable, fractionable, status } = read(asset, answer)
  return { symbol, name, tradable: tradable && fractionable && status === 'active' }
}

async function latestTrades(
  request: Request,
  data: string,
  symbols: readonly string[],
): Promise<ReadonlyMap<string, bigint>> {
  if (symbols.length === 0) return new Map()
  const answer = await request(
    'GET',
    `${data}/v2/stocks/trades/latest?symbols=${symbols.map(encodeURIComponent)}`,
  )
  const prices = read(trades, answer).trades
  return new Map(Object.entries(prices).map(([symbol, { p }]) => [symbol, toNanos(p)]))
}

/**
 * Closing prices of bars, hourly up to a month and daily beyond. A moment before the first bar gets the first bar's
 * price.
 */
async function loadHistory(
  request: Request,
  data: string,
  { symbols, moments }: { symbols: readonly string[]; moments: readonly Date[] },
): Promise<ReadonlyMap<string, readonly bigint[]>> {
  const [first, last] = [moments[0], moments.at(-1)]
  if (symbols.length === 0 || first === undefined || last === undefined) return new Map()
  const isLong = last.getTime() - first.getTime() > 31 * DAY
  const spanMs = isLong ? DAY : DAY / 24
  const query = new URLSearchParams({
    symbols: symbols.join(','),
    timeframe: isLong ? '1Day' : '1Hour',
    // The last bar before the first moment may be several closed days earlier.
    start: new Date(first.getTime() - 7 * DAY).toISOString(),
    end: last.toISOString(),
    limit: '10000',
    adjustment: 'raw',
    feed: 'iex',
  })
  const found = new Map<string, { at: number; price: bigint }[]>()
  let pages = 0
  for (let token: string | null = ''; token !== null; pages += 1) {
    if (pages === MAX_PAGES) throw unavailable('returned too many pages of history')
    if (token !== '') query.set('page_token', token)
    const page = read(bars, await request('GET', `${data}/v2/stocks/bars?${query}`))
    for (const [symbol, rows] of Object.entries(page.bars))
      found.set(symbol, [
        ...(found.get(symbol) ?? []),
        ...rows.map(({ t, c }) => ({ at: t.getTime() + spanMs, price: toNanos(c) })),
      ])
    token = page.next_page_token
  }
  return new Map([...found].map(([symbol, rows]) => [symbol, moments.map((at) => closingAt(rows, at))]))
}

function closingAt(rows: readonly { at: number; price: bigint }[], at: Date): bigint {
  return (rows.findLast((row) => row.at <= at.getTime()) ?? rows[0])?.price ?? 0n
}

async function announcedDividends(
  request: Request,
  base: string,
  { from, to }: { from: string; to: string },
): Promise<readonly Dividend[]> {
  const found: Dividend[] = []
  // Alpaca answers at most 90 days per request.
  for (let since = Date.parse(from); since <= Date.parse(to); since += 90 * DAY) {
    const until = new Date(Math.min(since + 89 * DAY, Date.parse(to))).toISOString().slice(0, 10)
    const query = new URLSearchParams({
      ca_types: 'dividend',
      date_type: 'record_date',
      since: new Date(since).toISOString().slice(0, 10),
      until,
    })
    const rows = read(
      z.array(announcement),
      await request('GET', `${base}/v1/corporate_actions/announcements?${query}`),
    )
    for (const { initiating_symbol: symbol, record_date: recordDate, payable_date: payDate, cash } of rows)
      if (recordDate !== null && payDate !== null && cash !== null && cash > 0n)
        found.push({ symbol, perShare: cash, recordDate, payDate })
  }
  return found
}
