/**
 * Alpaca's Broker API: one trading account, and its one owner: nobody else's orders are put into it. Orders are day orders, buys
 * by `notional`, sells by `qty`; our id is their `client_order_id`, which Alpaca takes once. Prices come from its market data.
 * @see https://docs.alpaca.markets/reference/createorderforaccount
 */

import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import { toJson } from '../../base/json.ts'
import type { Log } from '../../base/log.ts'
import { Failure } from '../../failures/failure.ts'
import { rootCause } from '../../failures/root-cause.ts'
import { decimalOfUnits } from '../../money/money.ts'
import { priceText } from '../../money/shares.ts'
import type {
  Broker,
  BrokerOrder,
  Dividend,
  Instrument,
  OrderReport,
  PlacementResult,
  UnreadableReport,
} from '../broker.ts'
import { callProvider } from '../http-client.ts'
import { announcement, asset, bars, nanosOf, order, problem, statusOf, trades } from './alpaca-shapes.ts'

/** How to reach it. @property timeoutMs for a whole answer. */
export interface AlpacaOptions {
  readonly url: string
  readonly dataUrl: string
  readonly apiKey: string
  readonly apiSecret: string
  readonly accountId: string
  /** `acct_…`: whose that account is; null: nobody trades. */
  readonly owner: string | null
  readonly clock: Clock
  readonly log: Log
  readonly timeoutMs?: number
}

/** What an answer was. @property body null where it is no JSON. */
interface Answer {
  readonly status: number
  readonly body: unknown
}

type Ask = (method: 'GET' | 'POST' | 'DELETE', url: string, body?: unknown) => Promise<Answer>

/** How long an instrument is believed to stay what it is, and a calendar to be complete. */
const INSTRUMENT_MS = 10 * 60_000
const CALENDAR_MS = 60 * 60_000
const DAY = 86_400_000
/** A page of bars is the largest answer. */
const LARGEST_BYTES = 8 * 1024 * 1024
/** Pages of one history. Whoever has more of them has no end. */
const MOST_PAGES = 20

/** The broker port over the API. */
export function createAlpacaBroker(options: AlpacaOptions): Broker {
  const ask = asking(options)
  const base = options.url.replace(/\/+$/, '')
  const data = options.dataUrl.replace(/\/+$/, '')
  const orders = `${base}/v1/trading/accounts/${options.accountId}/orders`
  const instruments = new LRUCache<string, Instrument>({ max: 1_000, ttl: INSTRUMENT_MS })
  const calendars = new LRUCache<string, readonly Dividend[]>({ max: 10, ttl: CALENDAR_MS })
  const findRaw = (id: string) => findOrder(ask, orders, id)
  return {
    name: 'alpaca',
    isOpenTo: (accountId) => accountId === options.owner,
    instrument: async (symbol) => {
      const known = instruments.get(symbol)
      if (known !== undefined) return known
      const found = await findInstrument(ask, base, symbol)
      if (found !== undefined) instruments.set(symbol, found)
      return found
    },
    quotes: (symbols) => latestTrades(ask, data, symbols),
    history: (symbols, moments) => historyOf(ask, data, { symbols, moments }),
    place: (placed) => place(ask, orders, placed),
    find: async (id) => {
      const found = await findRaw(id)
      return found === undefined ? undefined : reportOf(found)
    },
    cancel: async (id) => {
      const found = await findRaw(id)
      const known = order.safeParse(found?.body)
      // An order that cannot be read is stopped for a person.
      if (!known.success) return
      const { status } = await ask('DELETE', `${orders}/${encodeURIComponent(known.data.id)}`)
      // 422: it has ended meanwhile.
      if (![204, 207, 404, 422].includes(status)) throw unavailable(`answered ${status}`)
    },
    dividends: async (from, to) => {
      const known = calendars.get(`${from} ${to}`)
      if (known !== undefined) return known
      const found = await announcedDividends(ask, base, { from, to })
      calendars.set(`${from} ${to}`, found)
      return found
    },
  }
}

/** Asks with the operator's key. @throws Failure `provider_unavailable` where nothing usable comes. */
function asking({ apiKey, apiSecret, log, timeoutMs = 5_000 }: AlpacaOptions): Ask {
  const authorization = `Basic ${Buffer.from(`${apiKey}:${apiSecret}`).toString('base64')}`
  return async (method, url, body) => {
    try {
      const response = await callProvider({
        url,
        method,
        headers: {
          accept: 'application/json',
          authorization,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        timeoutMs,
        maxBytes: LARGEST_BYTES,
      })
      const { text } = response
      if (response.status === 429 || response.status >= 500 || [401, 408].includes(response.status))
        throw unavailable(`answered ${response.status}`)
      return { status: response.status, body: text === '' ? null : JSON.parse(text) }
    } catch (cause) {
      const failure =
        cause instanceof Failure ? cause : unavailable(`gave no usable answer in ${timeoutMs} ms`, cause)
      log.warn({ why: rootCause(cause) }, 'the broker cannot be used')
      throw failure
    }
  }
}

function unavailable(why: string, cause?: unknown): Failure {
  return new Failure(
    'provider_unavailable',
    `The broker ${why}.`,
    { retryAfter: 5, hint: 'Send the same request again later.' },
    cause === undefined ? undefined : { cause },
  )
}

/** The answer's body in a shape. @throws Failure `provider_unavailable` where it is another. */
function read<Schema extends z.ZodType>(schema: Schema, { status, body }: Answer): z.output<Schema> {
  const parsed = schema.safeParse(body)
  if (status !== 200 || !parsed.success) throw unavailable(`answered ${status} with something else`)
  return parsed.data
}

async function place(ask: Ask, orders: string, placed: BrokerOrder): Promise<PlacementResult> {
  const answer = await ask('POST', orders, {
    symbol: placed.symbol,
    side: placed.side,
    ...(placed.qty === null
      ? { notional: decimalOfUnits(placed.notional, 2) }
      : { qty: decimalOfUnits(placed.qty, 9) }),
    ...(placed.limitPrice === null
      ? { type: 'market' }
      : { type: 'limit', limit_price: priceText(placed.limitPrice) }),
    time_in_force: 'day',
    client_order_id: placed.id,
  })
  if (answer.status === 200) return { status: 'placed', report: reportOf(answer) }
  const { message } = problem.parse(answer.body)
  if (answer.status === 422 && /client_order_id/.test(message)) {
    const known = await findOrder(ask, orders, placed.id)
    if (known !== undefined) return { status: 'placed', report: reportOf(known) }
  }
  const reasons: Readonly<Record<number, string>> = { 403: 'forbidden_by_broker', 422: 'invalid_for_broker' }
  const reason = reasons[answer.status]
  // Anything else may have been placed for all we know.
  if (reason === undefined) throw unavailable(`answered ${answer.status} to an order`)
  return { status: 'refused', reason, message }
}

async function findOrder(ask: Ask, orders: string, id: string): Promise<Answer | undefined> {
  const answer = await ask('GET', `${orders}:by_client_order_id?client_order_id=${encodeURIComponent(id)}`)
  if (answer.status === 404) return undefined
  if (answer.status !== 200) throw unavailable(`answered ${answer.status} with something else`)
  return answer
}

/** The report in an answer. What cannot be read is told as it is: asking again brings nothing else. */
function reportOf({ body }: Answer): OrderReport | UnreadableReport {
  const parsed = order.safeParse(body)
  if (!parsed.success) return { status: 'unreadable', reported: toJson(body) }
  const { filled_qty: filledQty, filled_avg_price: price, filled_at: filledAt, status } = parsed.data
  return {
    id: parsed.data.client_order_id,
    symbol: parsed.data.symbol,
    side: parsed.data.side,
    status: statusOf(status, filledQty),
    filledQty,
    filledValue: filledQty * (price ?? 0n),
    filledAt,
    reason: status === 'rejected' ? 'rejected_by_broker' : null,
  }
}

async function findInstrument(ask: Ask, base: string, symbol: string): Promise<Instrument | undefined> {
  const answer = await ask('GET', `${base}/v1/assets/${encodeURIComponent(symbol)}`)
  if (answer.status === 404 || answer.status === 422) return undefined
  const { name, tradable, fractionable, status } = read(asset, answer)
  return { symbol, name, tradable: tradable && fractionable && status === 'active' }
}

async function latestTrades(
  ask: Ask,
  data: string,
  symbols: readonly string[],
): Promise<ReadonlyMap<string, bigint>> {
  if (symbols.length === 0) return new Map()
  const answer = await ask(
    'GET',
    `${data}/v2/stocks/trades/latest?symbols=${symbols.map(encodeURIComponent)}`,
  )
  const prices = read(trades, answer).trades
  return new Map(Object.entries(prices).map(([symbol, { p }]) => [symbol, nanosOf(p)]))
}

/** Closing prices of bars: by the hour up to a month, else by the day. A moment before the first bar has the first one's. */
async function historyOf(
  ask: Ask,
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
    // The last bar that ended before the first moment may be some closed days back.
    start: new Date(first.getTime() - 7 * DAY).toISOString(),
    end: last.toISOString(),
    limit: '10000',
    adjustment: 'raw',
    feed: 'iex',
  })
  const found = new Map<string, { at: number; price: bigint }[]>()
  let pages = 0
  for (let token: string | null = ''; token !== null; pages += 1) {
    if (pages === MOST_PAGES) throw unavailable('told a history without an end')
    if (token !== '') query.set('page_token', token)
    const page = read(bars, await ask('GET', `${data}/v2/stocks/bars?${query}`))
    for (const [symbol, rows] of Object.entries(page.bars))
      found.set(symbol, [
        ...(found.get(symbol) ?? []),
        ...rows.map(({ t, c }) => ({ at: t.getTime() + spanMs, price: nanosOf(c) })),
      ])
    token = page.next_page_token
  }
  return new Map([...found].map(([symbol, rows]) => [symbol, moments.map((at) => closingAt(rows, at))]))
}

function closingAt(rows: readonly { at: number; price: bigint }[], at: Date): bigint {
  return (rows.findLast((row) => row.at <= at.getTime()) ?? rows[0])?.price ?? 0n
}

async function announcedDividends(
  ask: Ask,
  base: string,
  { from, to }: { from: string; to: string },
): Promise<readonly Dividend[]> {
  const found: Dividend[] = []
  // Alpaca answers 90 days at most.
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
      await ask('GET', `${base}/v1/corporate_actions/announcements?${query}`),
    )
    for (const { initiating_symbol: symbol, record_date: recordDate, payable_date: payDate, cash } of rows)
      if (recordDate !== null && payDate !== null && cash !== null && cash > 0n)
        found.push({ symbol, perShare: cash, recordDate, payDate })
  }
  return found
}
