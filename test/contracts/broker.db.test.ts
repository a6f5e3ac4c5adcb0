/** The broker port's contract, on every adapter, and the specifics of each adapter. */
import type { ServerResponse } from 'node:http'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/core/base/clock.ts'
import { newId } from '../../src/core/base/ids.ts'
import { silentLog } from '../../src/core/base/log.ts'
import { costRoundedUp } from '../../src/core/money/shares.ts'
import { createAlpacaBroker } from '../../src/providers/broker/alpaca.ts'
import { noBroker } from '../../src/providers/broker/none.ts'
import type { Broker, BrokerOrder } from '../../src/providers/broker/port.ts'
import { createSandboxBroker } from '../../src/providers/broker/sandbox.ts'
import type { Database } from '../../src/storage/database.ts'
import { openPglite } from '../../src/storage/pglite.ts'
import { noon } from '../kernel/scene.ts'
import { movedClock } from '../rails/investing/scene.ts'
import { type Interruption, startAlpacaServer } from './alpaca-server.ts'

const NANOS = 10n ** 9n
const share = 100n * NANOS
const nextId = () => newId('ord', noon)
let brokerageAccount: string | null = null
const buying = (changes: Partial<BrokerOrder> = {}): BrokerOrder => ({
  id: nextId(),
  symbol: 'VTI',
  side: 'buy',
  notional: 1_000n,
  qty: null,
  limitPrice: null,
  brokerageAccount,
  ...changes,
})

/** The contract of every broker. The price of VTI is 100 USD. @param later advances the market. */
function testBroker(broker: () => Broker, later: () => void): void {
  const placeAndReport = async (placed: BrokerOrder) => {
    const placement = await broker().place(placed)
    if (placement.status === 'refused') throw new Error(placement.message)
    return placement.report
  }

  it('lists the traded symbols with their prices', async () => {
    expect(await broker().instrument('VTI')).toEqual({
      symbol: 'VTI',
      name: 'Vanguard Total Stock Market ETF',
      tradable: true,
    })
    expect(await broker().instrument('NOPE')).toBeUndefined()
    expect(await broker().quotes(['VTI'])).toEqual(new Map([['VTI', share]]))
    expect((await broker().quotes([])).size).toBe(0)
  })

  it('fills a market buy for its amount', async () => {
    const placed = buying()
    const report = await placeAndReport(placed)
    expect(report).toMatchObject({ status: 'filled', filledQty: NANOS / 10n, reason: null })
    if (report.status === 'unreadable') throw new Error('the report cannot be read')
    expect(costRoundedUp(report.filledValue, 1n)).toBe(placed.notional)
    expect(report.filledAt).toBeInstanceOf(Date)
    expect(await broker().find(placed)).toEqual(report)
  })

  it('sells a quantity', async () => {
    const report = await placeAndReport(buying({ side: 'sell', notional: 5_000n, qty: NANOS / 2n }))
    expect(report).toMatchObject({ status: 'filled', filledQty: NANOS / 2n })
  })

  it('accepts an id once that comes twice at once, and the other orders of the moment', async () => {
    const placed = buying()
    const [first, second, other] = await Promise.all([
      placeAndReport(placed),
      placeAndReport({ ...placed, notional: 2_000n }),
      placeAndReport(buying()),
    ])
    expect(second).toEqual(first)
    expect(other).toMatchObject({ status: 'filled' })
    expect(await broker().find(placed)).toEqual(first)
  })

  it('accepts an id once', async () => {
    const placed = buying()
    const first = await placeAndReport(placed)
    expect(await placeAndReport({ ...placed, notional: 2_000n })).toEqual(first)
    expect(await broker().find(placed)).toEqual(first)
  })

  it('keeps a limit order open, and cancels it once', async () => {
    const placed = buying({ limitPrice: 50n * NANOS })
    const waiting = { status: 'accepted', filledQty: 0n, filledValue: 0n }
    expect(await placeAndReport(placed)).toMatchObject(waiting)
    expect(await broker().find(placed)).toMatchObject(waiting)
    await broker().cancel(placed)
    expect(await broker().find(placed)).toMatchObject({ ...waiting, status: 'canceled' })
    await broker().cancel(placed)
    expect(await broker().find(placed)).toMatchObject({ ...waiting, status: 'canceled' })
  })

  it('leaves a filled order unchanged when it is canceled', async () => {
    const placed = buying()
    const report = await placeAndReport(placed)
    await broker().cancel(placed)
    expect(await broker().find(placed)).toEqual(report)
  })

  it('fills a large order in parts', async () => {
    const placed = buying({ notional: 1_500_000n })
    expect(await placeAndReport(placed)).toMatchObject({
      status: 'partially_filled',
      filledQty: 100n * NANOS,
    })
    later()
    expect(await broker().find(placed)).toMatchObject({ status: 'filled', filledQty: 150n * NANOS })
  })

  it('refuses untraded symbols, and finds no unknown order', async () => {
    expect(await broker().place(buying({ symbol: 'NOPE' }))).toMatchObject({ status: 'refused' })
    expect(await broker().find(buying())).toBeUndefined()
    await broker().cancel(buying())
  })

  it('has a price for every moment, and a calendar', async () => {
    const moments = [0, 1, 2].map((day) => new Date(noon.getTime() - (3 - day) * 86_400_000))
    const prices = (await broker().history(['VTI'], moments)).get('VTI')
    expect(prices).toHaveLength(3)
    expect(prices?.every((price) => price > 0n)).toBe(true)
    for (const dividend of await broker().dividends('2026-08-01', '2026-11-20')) {
      expect(dividend.perShare > 0n).toBe(true)
      expect(dividend.recordDate >= '2026-08-01' && dividend.recordDate <= '2026-11-20').toBe(true)
      expect(dividend.payDate >= dividend.recordDate).toBe(true)
    }
  })
}

describe('broker: sandbox', () => {
  const clock = movedClock()
  let database: Database
  let broker: Broker
  beforeAll(async () => {
    database = await openPglite({ directory: 'memory', now: systemClock, log: silentLog })
    await database.migrate()
    broker = createSandboxBroker({ database, clock, hours: 'always', feed: () => share })
  })
  afterAll(() => database.close())
  testBroker(
    () => broker,
    () => clock.forward(1_000),
  )

  it('expires a day order with its session', async () => {
    const placed = buying({ limitPrice: 50n * NANOS })
    await broker.place(placed)
    clock.forward(12 * 3_600_000 - 10_000)
    expect(await broker.find(placed)).toMatchObject({ status: 'accepted' })
    clock.forward(10_000)
    expect(await broker.find(placed)).toMatchObject({ status: 'expired', filledQty: 0n })
  })

  it('keeps orders for the next session while the market is closed, on New York’s calendar', async () => {
    const saturday = movedClock(new Date('2026-11-21T12:00:00.000Z'))
    const nyse = createSandboxBroker({ database, clock: saturday, hours: 'nyse', feed: () => share })
    const placed = buying()
    expect(await nyse.place(placed)).toMatchObject({ report: { status: 'accepted' } })
    saturday.forward(2 * 86_400_000)
    expect(await nyse.find(placed)).toMatchObject({ status: 'accepted' })
    // Monday, 9:30 in New York.
    saturday.forward(2.5 * 3_600_000)
    expect(await nyse.find(placed)).toMatchObject({
      status: 'filled',
      filledAt: new Date('2026-11-23T14:30:00.000Z'),
    })
  })
})

describe('broker: alpaca', () => {
  let server: Awaited<ReturnType<typeof startAlpacaServer>>
  let broker: Broker
  beforeAll(async () => {
    server = await startAlpacaServer()
    const { url, firm } = server
    brokerageAccount = server.add({ cash: 500_000, shares: 1_000 }).id
    broker = createAlpacaBroker({
      url: `${url}/`,
      dataUrl: url,
      apiKey: 'a-key',
      apiSecret: 'a-secret',
      firmAccountId: firm.id,
      clock: () => noon,
      log: silentLog,
      timeoutMs: 1_500,
    })
  })
  afterAll(() => server.close())
  afterEach(() => {
    server.state.interrupt = () => false
  })
  testBroker(
    () => broker,
    () => {},
  )

  it('sends buys by amount and sells by quantity, as day orders with our id and the key', async () => {
    const limited = buying({ notional: 12_345n, limitPrice: 99_500_000_000n })
    await broker.place(limited)
    expect(server.asked.at(-1)).toMatchObject({
      method: 'POST',
      path: `/v1/trading/accounts/${brokerageAccount}/orders`,
      headers: { authorization: `Basic ${Buffer.from('a-key:a-secret').toString('base64')}` },
      body: {
        symbol: 'VTI',
        side: 'buy',
        type: 'limit',
        notional: '123.45',
        limit_price: '99.50',
        time_in_force: 'day',
        client_order_id: limited.id,
      },
    })
    await broker.place(buying({ side: 'sell', qty: 1_234_567_891n }))
    const { body } = server.asked.at(-1) ?? { body: {} }
    expect(body).toMatchObject({ type: 'market', qty: '1.234567891' })
    expect(body).not.toHaveProperty('notional')
  })

  it('maps refusals of the broker to their reasons', async () => {
    expect(await broker.place(buying({ notional: 60_000_000n }))).toEqual({
      status: 'refused',
      reason: 'forbidden_by_broker',
      message: 'insufficient buying power',
    })
    server.state.interrupt = (_asked, response) => {
      response.writeHead(422).end('{"code":42210000,"message":"market is closed"}')
      return true
    }
    expect(await broker.place(buying())).toMatchObject({
      status: 'refused',
      reason: 'invalid_for_broker',
    })
  })

  const end = (status: number, text: string) => (response: ServerResponse) =>
    void response.writeHead(status).end(text)
  it.each([
    ['500', end(500, '{}')],
    ['429', end(429, '{}')],
    ['401 for a wrong key', end(401, '{}')],
    ['400', end(400, '{"message":"?"}')],
    ['a redirect', (response: ServerResponse) => void response.writeHead(302, { location: '/' }).end()],
    ['invalid JSON', end(200, '<html>')],
    ['a hang-up', (response: ServerResponse) => void response.destroy()],
    ['silence', () => {}],
  ])('throws provider_unavailable for an order on %s', async (_name, answer) => {
    server.state.interrupt = (_asked, response) => {
      answer(response)
      return true
    }
    const failure: unknown = await broker.place(buying()).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'provider_unavailable' })
    expect(String(failure)).not.toContain('a-secret')
    await expect(broker.find(buying())).rejects.toMatchObject({ code: 'provider_unavailable' })
  })

  it.each([
    ['an unexpected document', { orders: [] }],
    ['an invalid quantity', { id: '1', client_order_id: '1', status: 'new', filled_qty: '-1' }],
  ])('returns %s as an unreadable report', async (_name, body) => {
    server.state.interrupt = (_asked, response) => {
      end(200, JSON.stringify(body))(response)
      return true
    }
    const report = { status: 'unreadable', reported: body }
    expect(await broker.place(buying())).toEqual({ status: 'placed', report })
    expect(await broker.find(buying())).toEqual(report)
  })

  it('finds an order whose placing was interrupted, and does not place it twice', async () => {
    const placed = buying()
    // The order is accepted, and its answer is lost.
    const cut: Interruption = ({ method }, response) => {
      if (method !== 'POST') return false
      server.state.interrupt = () => false
      server.owners.set(placed.id, brokerageAccount ?? '')
      server.orders.set(placed.id, {
        id: 'alpaca-cut',
        client_order_id: placed.id,
        symbol: 'VTI',
        side: 'buy',
        notional: '10',
        qty: null,
        limit_price: null,
        status: 'new',
        filled_qty: '0',
        filled_avg_price: null,
        filled_at: null,
      })
      response.destroy()
      return true
    }
    server.state.interrupt = cut
    await expect(broker.place(placed)).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(await broker.place(placed)).toMatchObject({ status: 'placed', report: { status: 'accepted' } })
    expect([...server.orders.values()].filter((kept) => kept.client_order_id === placed.id)).toHaveLength(1)
  })

  it('uses the closing price of the last bar that ended by each moment', async () => {
    const moments = [0, 5, 10].map((hours) => new Date(noon.getTime() + hours * 3_600_000))
    // The second page's first bar begins at the first moment: 7 days after the start of the requested range.
    expect((await broker.history(['VTI'], moments)).get('VTI')).toEqual([
      100_100_000_000n,
      100_700_000_000n,
      100_700_000_000n,
    ])
  })
})

describe('broker: none', () => {
  it('fails closed', async () => {
    for (const failingCall of [
      noBroker.instrument('VTI'),
      noBroker.quotes(['VTI']),
      noBroker.history(['VTI'], []),
      noBroker.place(buying()),
      noBroker.find(buying()),
      noBroker.cancel(buying()),
    ])
      await expect(failingCall).rejects.toMatchObject({ code: 'provider_unavailable' })
  })
})
