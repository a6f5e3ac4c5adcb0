/**
 * Investing with the built gateway: a person over REST, an agent over MCP, a limit order that the feed crosses, a kill
 * -9 meanwhile.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { createFeed } from '../../src/providers/broker/sandbox-feed.ts'
import { instruments } from '../../src/providers/broker/sandbox-instruments.ts'
import { postCall } from '../mcp/post-call.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person } from './people.ts'

const series = z.object({ timestamp: z.array(z.string()), profitLossPct: z.array(z.string()) })
const shown = z.object({
  cash: z.string(),
  buyingPower: z.string(),
  equity: z.string(),
  holdings: z.array(z.looseObject({ symbol: z.string(), qty: z.string(), marketValue: z.string() })),
  dividends: z.array(z.looseObject({ symbol: z.string(), status: z.string(), amount: z.string() })),
  performance: z.object({ profitLossPct: z.string(), series: series.nullable() }),
})
const placed = z.looseObject({ id: z.string(), status: z.string(), filledQty: z.string() })

const directory = mkdtempSync(join(tmpdir(), 'bursar-investing-'))
const env = { CHAIN: 'simulated', DATA_DIR: directory, RATE_MUTATIONS: '100000/60' }
let gateway: Gateway
let guest: Person

const place = async (send: object, headers: Record<string, string> = {}) =>
  guest.send('POST', '/api/investing/order', send, headers)
const portfolio = async (timeframe = '1M', person = guest) =>
  shown.parse((await person.send('GET', `/api/investing/portfolio?timeframe=${timeframe}`)).body)
const paidDividends = async (person: Person) =>
  (await portfolio('1M', person)).dividends.filter(({ status }) => status === 'paid')
const orderNow = async (id: string) => {
  const { body } = await guest.send('GET', '/api/investing/orders?limit=100')
  return z
    .array(placed)
    .parse(body.orders)
    .find((order) => order.id === id)
}

beforeAll(async () => {
  gateway = await startGateway(env)
  guest = await newGuest(gateway.origin)
  await vi.waitFor(async () => expect(await paidDividends(guest)).not.toEqual([]), {
    timeout: 15_000,
    interval: 50,
  })
})
afterAll(async () => {
  await gateway?.stop()
  rmSync(directory, { recursive: true, force: true })
})

describe('a person who invests', () => {
  it('starts with cash, shares, a history, and dividends that are paid', async () => {
    const person = await newGuest(gateway.origin)
    const start = await portfolio('all', person)
    expect(start.holdings.map(({ symbol }) => symbol)).toEqual(['AAPL', 'O', 'VTI'])
    expect(start.performance.series).toBeNull()
    const { series } = (await portfolio('all&series=true', person)).performance
    expect(series?.timestamp).toHaveLength(101)
    expect(series?.profitLossPct).toHaveLength(101)
    // One symbol pays monthly: at least one dividend within 90 days.
    await expect
      .poll(() => paidDividends(person), { timeout: 15_000, interval: 50 })
      .toContainEqual(expect.objectContaining({ symbol: 'O' }))
    expect(Number((await portfolio('1M', person)).cash)).toBeGreaterThan(500)
  })

  it('buys, sells, and is rejected when short of cash or shares', async () => {
    const before = await portfolio()
    const bought = await place({ symbol: 'MSFT', side: 'buy', notional: 100 })
    expect([bought.status, bought.body]).toMatchObject([200, { status: 'filled', symbol: 'MSFT' }])
    const after = await portfolio()
    expect(after.holdings.map(({ symbol }) => symbol)).toContain('MSFT')
    expect(Number(before.cash) - Number(after.cash)).toBeCloseTo(100, 2)
    expect((await place({ symbol: 'MSFT', side: 'sell', notional: 50 })).body).toMatchObject({
      status: 'filled',
    })
    expect(await place({ symbol: 'MSFT', side: 'sell', notional: 500 })).toMatchObject({
      status: 422,
      body: { code: 'insufficient_funds' },
    })
    expect(await place({ symbol: 'NOPE', side: 'buy', notional: 5 })).toMatchObject({
      status: 422,
      body: { code: 'order_rejected', reason: 'unknown_symbol' },
    })
  })

  it('has a limit order filled once the feed crosses it', { timeout: 60_000 }, async () => {
    const { symbol, limit } = soonCrossed()
    const { body } = await place({ symbol, side: 'buy', type: 'limit', limitPrice: limit, notional: '20' })
    const order = placed.parse(body)
    expect(order.status).toBe('accepted')
    await expect
      .poll(async () => (await orderNow(order.id))?.status, { timeout: 30_000, interval: 50 })
      .toBe('filled')
  })

  it('cancels an open order', async () => {
    const { buyingPower } = await portfolio()
    const { body } = await place({
      symbol: 'SPY',
      side: 'buy',
      type: 'limit',
      limitPrice: '1',
      notional: '40',
    })
    expect(Number((await portfolio()).buyingPower)).toBeCloseTo(Number(buyingPower) - 40, 2)
    const canceled = await guest.send('DELETE', `/api/investing/orders/${body.id}`)
    expect(canceled).toMatchObject({ status: 200, body: { status: 'canceled' } })
    expect((await portfolio()).buyingPower).toBe(buyingPower)
  })
})

describe('an agent that invests', () => {
  it('trades over MCP, in the symbols that its policy allows', async () => {
    const policy = {
      perTransaction: { max: '30' },
      dailyBudget: { max: '50' },
      categories: { allow: ['invest'] },
      symbols: { allow: ['VTI', 'BND'] },
    }
    const key = await guest.send('POST', '/api/developer/keys', {
      name: 'Saver',
      scopes: ['investing:read', 'investing:trade'],
      policy,
    })
    const call = async (name: string, args: object) => {
      const response = await postCall(gateway.origin, String(key.body.key), name, args)
      const { result } = z
        .object({
          result: z.looseObject({
            isError: z.boolean().optional(),
            structuredContent: z.looseObject({}).optional(),
            content: z.array(z.object({ text: z.string() })),
          }),
        })
        .parse(await response.json())
      return result.structuredContent ?? JSON.parse(result.content[0]?.text ?? '')
    }
    const buy = { symbol: 'BND', side: 'buy', notional: '20' }
    const bought = await call('investing_order', { ...buy, idempotency_key: 'one' })
    expect(bought).toMatchObject({ status: 'filled', notional: '20' })
    const again = await call('investing_order', { ...buy, idempotency_key: 'one' })
    expect(again).toEqual({ ...bought, replayed: true })
    expect(await call('investing_order', { ...buy, symbol: 'TSLA', idempotency_key: 'two' })).toMatchObject({
      code: 'policy_denied',
      violations: [{ rule: 'symbol', requested: 'TSLA' }],
    })
    expect(await call('investing_order', { ...buy, notional: '31', idempotency_key: 'three' })).toMatchObject(
      { code: 'policy_denied', violations: [{ rule: 'per_transaction' }, { rule: 'daily_budget' }] },
    )
    // A sell counts against the same policy: 20 of 50 are used.
    const sold = await call('investing_order', {
      ...buy,
      side: 'sell',
      notional: '10',
      idempotency_key: 'four',
    })
    expect(sold).toMatchObject({ side: 'sell', status: 'filled' })
    expect(
      await call('investing_order', { ...buy, side: 'sell', notional: '25', idempotency_key: 'five' }),
    ).toMatchObject({ code: 'policy_denied', violations: [{ rule: 'daily_budget', used: '30' }] })
    const { holdings } = shown.parse(await call('investing_portfolio', { timeframe: '1D' }))
    expect(holdings.map(({ symbol }) => symbol)).toContain('BND')
  })
})

describe('a gateway that is killed', () => {
  it('resumes open orders after its restart', { timeout: 90_000 }, async () => {
    const { symbol, limit } = soonCrossed()
    const { body } = await place({ symbol, side: 'buy', type: 'limit', limitPrice: limit, notional: '20' })
    const order = placed.parse(body)
    const exited = once(gateway.process, 'exit')
    gateway.process.kill('SIGKILL')
    await exited
    gateway = await startGateway({ ...env, PORT: new URL(gateway.origin).port })
    await expect
      .poll(async () => (await orderNow(order.id))?.status, { timeout: 40_000, interval: 50 })
      .toBe('filled')
  })
})

/** Picks a symbol whose price falls by a cent soon but not at once: the feed is a function of the clock. */
function soonCrossed(): { symbol: string; limit: string } {
  const feed = createFeed()
  const now = Date.now()
  const priceIn = (symbol: string, seconds: number) => feed(symbol, new Date(now + seconds * 1_000)) ?? 0n
  for (let seconds = 4; seconds < 16; seconds += 1)
    for (const [symbol] of instruments) {
      const limit = priceIn(symbol, 0) - 10_000_000n
      const isEarly = [0, 1, 2, 3].some((second) => priceIn(symbol, second) <= limit)
      if (!isEarly && priceIn(symbol, seconds) <= limit)
        return { symbol, limit: (Number(limit) / 1e9).toFixed(2) }
    }
  throw new Error('no price falls within the next seconds')
}
