/** A server with the parts of Alpaca's Broker API that the adapter uses: one symbol at 100 USD, orders by its rules. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** A request that the server received. */
export interface RecordedRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Record<string, unknown>
}

/** Replaces an answer. @returns true if it has answered. */
export type Interruption = (asked: RecordedRequest, response: ServerResponse) => boolean

const PRICE = 100
const ACCOUNT = 'acc-1'
/** Amount that a market order fills at once; the rest fills on the next read. */
const DEPTH = 10_000

interface Kept {
  id: string
  client_order_id: string
  symbol: string
  side: string
  notional: string | null
  qty: string | null
  limit_price: string | null
  status: string
  filled_qty: string
  filled_avg_price: string | null
  filled_at: string | null
}

/** Starts the server. @property interrupt runs before every answer. */
export async function startAlpacaServer() {
  const orders = new Map<string, Kept>()
  const asked: RecordedRequest[] = []
  const state: { interrupt: Interruption } = { interrupt: () => false }
  const server = createServer(async (request, response) => {
    const body = await text(request)
    const path = request.url ?? ''
    const question: RecordedRequest = {
      method: request.method ?? '',
      path,
      headers: request.headers,
      body: body === '' ? {} : JSON.parse(body),
    }
    asked.push(question)
    if (state.interrupt(question, response)) return
    const { status, answer } = answerTo(orders, question)
    response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(answer === undefined ? '' : JSON.stringify(answer))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  // A listening server has an address object with a port.
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    accountId: ACCOUNT,
    orders,
    asked,
    state,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

function answerTo(
  orders: Map<string, Kept>,
  { method, path, body }: RecordedRequest,
): { status: number; answer?: unknown } {
  const base = `/v1/trading/accounts/${ACCOUNT}/orders`
  const url = new URL(path, 'http://alpaca')
  if (method === 'POST' && path === base) return place(orders, body)
  if (method === 'GET' && url.pathname === `${base}:by_client_order_id`) {
    const kept = orders.get(url.searchParams.get('client_order_id') ?? '')
    if (kept === undefined) return { status: 404, answer: { code: 40410000, message: 'order not found' } }
    if (kept.status === 'partially_filled') fill(kept, Number.POSITIVE_INFINITY)
    return { status: 200, answer: kept }
  }
  if (method === 'DELETE' && path.startsWith(`${base}/`)) {
    const kept = [...orders.values()].find(({ id }) => path.endsWith(id))
    if (kept === undefined) return { status: 404, answer: { message: 'order not found' } }
    if (kept.status !== 'new' && kept.status !== 'partially_filled')
      return {
        status: 422,
        answer: { code: 42210000, message: `order is already in "${kept.status}" state` },
      }
    kept.status = 'canceled'
    return { status: 204 }
  }
  if (path === '/v1/assets/VTI')
    return {
      status: 200,
      answer: {
        id: 'a',
        symbol: 'VTI',
        name: 'Vanguard Total Stock Market ETF',
        status: 'active',
        tradable: true,
        fractionable: true,
      },
    }
  if (path.startsWith('/v1/assets/'))
    return { status: 404, answer: { code: 40410000, message: 'asset not found' } }
  if (url.pathname === '/v2/stocks/trades/latest')
    return { status: 200, answer: { trades: { VTI: { t: '2026-11-20T12:00:00Z', p: PRICE, s: 1 } } } }
  if (url.pathname === '/v2/stocks/bars') return { status: 200, answer: barsFrom(url.searchParams) }
  if (url.pathname === '/v1/corporate_actions/announcements')
    return {
      status: 200,
      answer: [
        {
          id: 'x',
          ca_type: 'dividend',
          initiating_symbol: 'VTI',
          record_date: url.searchParams.get('since'),
          payable_date: url.searchParams.get('until'),
          cash: '0.9523',
        },
      ],
    }
  return { status: 404, answer: { message: `no ${method} ${path}` } }
}

/** Two pages of two bars each, a tenth of a dollar apart. */
function barsFrom(query: URLSearchParams) {
  const start = Date.parse(query.get('start') ?? '')
  const isFirst = query.get('page_token') === null
  const hours = isFirst ? [0, 24] : [7 * 24, 8 * 24]
  const bars = hours.map((hour) => ({
    t: new Date(start + hour * 3_600_000).toISOString(),
    o: PRICE,
    h: PRICE,
    l: PRICE,
    c: PRICE + hour / 240,
    v: 1,
  }))
  return { bars: { VTI: bars }, next_page_token: isFirst ? 'two' : null }
}

function place(orders: Map<string, Kept>, body: Record<string, unknown>) {
  const text = (name: string) => (body[name] === undefined ? null : String(body[name]))
  const id = text('client_order_id') ?? ''
  if (orders.has(id))
    return { status: 422, answer: { code: 40010001, message: 'client_order_id must be unique' } }
  if (text('symbol') !== 'VTI')
    return { status: 422, answer: { code: 42210000, message: `asset "${text('symbol')}" not found` } }
  if (Number(text('notional')) > 500_000)
    return { status: 403, answer: { code: 40310000, message: 'insufficient buying power' } }
  const kept: Kept = {
    id: `alpaca-${orders.size + 1}`,
    client_order_id: id,
    symbol: 'VTI',
    side: text('side') ?? '',
    notional: text('notional'),
    qty: text('qty'),
    limit_price: text('limit_price'),
    status: 'new',
    filled_qty: '0',
    filled_avg_price: null,
    filled_at: null,
  }
  orders.set(id, kept)
  const limit = kept.limit_price === null ? null : Number(kept.limit_price)
  const isMet = limit === null || (kept.side === 'buy' ? limit >= PRICE : limit <= PRICE)
  if (isMet) fill(kept, DEPTH)
  return { status: 200, answer: kept }
}

function fill(kept: Kept, depth: number): void {
  const wanted = kept.qty === null ? Number(kept.notional) / PRICE : Number(kept.qty)
  const units = Math.min(wanted, depth / PRICE)
  kept.filled_qty = String(units)
  kept.filled_avg_price = String(PRICE)
  kept.filled_at = '2026-11-20T12:00:00.123456Z'
  kept.status = units < wanted ? 'partially_filled' : 'filled'
}
