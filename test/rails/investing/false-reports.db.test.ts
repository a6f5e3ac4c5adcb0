/**
 * A broker with impossible reports: nothing is booked, the hold stays, one alarm is raised, and the order resumes when
 * a person clears it.
 */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { openAlarms, resolveAlarm } from '../../../src/books/alarms/alarms.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { createAlpacaBroker } from '../../../src/providers/broker/alpaca.ts'
import { settleOrders } from '../../../src/server/jobs/settle-orders.ts'
import order from '../../../tools/investing/order.ts'
import portfolio from '../../../tools/investing/portfolio.ts'
import { startAlpacaServer } from '../../contracts/alpaca-server.ts'
import { onBothEngines } from '../../engines.ts'
import { type SignedIn, signInAgain } from '../../people/identity/signed-in.ts'
import { movedClock, newInvestor, servicesWithMarket } from './scene.ts'

const quiet = new AbortController().signal

onBothEngines('a broker’s reports', (database) => {
  const clock = movedClock()
  let server: Awaited<ReturnType<typeof startAlpacaServer>>
  let market: Services
  let services: Services
  let investor: SignedIn
  let requestCount: number
  /** Overrides for every report. */
  let lies: Record<string, unknown> | null
  beforeAll(async () => {
    server = await startAlpacaServer()
    market = await servicesWithMarket(database(), { clock, feed: () => 100n * 1_000_000_000n })
  })
  afterAll(() => server.close())
  beforeEach(async () => {
    clock.forward(3_600_000)
    investor = await newInvestor(market)
    await investor.call(order, { symbol: 'VTI', side: 'buy', notional: '200' }, { at: clock() })
    const { url, firm } = server
    await database()
      .kysely.insertInto('brokerage_account')
      .values({
        account_id: investor.accountId,
        status: 'active',
        provider_id: server.add({ cash: 10_000, shares: 1_000 }).id,
        sealed: null,
        created_at: clock(),
        checked_at: clock(),
      })
      .execute()
    const live = createAlpacaBroker({
      url,
      dataUrl: url,
      apiKey: 'key',
      apiSecret: 'secret',
      firmAccountId: firm.id,
      clock,
      log: silentLog,
    })
    services = { ...market, broker: live }
    investor = await signInAgain(services, investor.accountId, clock())
    server.orders.clear()
    lies = null
    requestCount = 0
    server.state.interrupt = ({ method, path, body }, response) => {
      if (!path.includes('/orders') || method === 'DELETE') return false
      requestCount += 1
      if (lies === null) return false
      const id = body.client_order_id ?? new URL(path, 'http://x').searchParams.get('client_order_id')
      const { client_order_id, symbol = 'VTI', side = 'buy' } = body
      const known = { id: 'o-1', client_order_id: client_order_id ?? id, symbol, side }
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ ...known, filled_at: null, filled_avg_price: null, filled_qty: '0', ...lies }))
      return true
    }
  })
  const holdings = async () => {
    investor = await signInAgain(services, investor.accountId, clock())
    const { body } = await investor.call(portfolio, {}, { at: clock() })
    const {
      cash,
      buyingPower,
      holdings: held,
    } = body as {
      cash: string
      buyingPower: string
      holdings: { symbol: string; qty: string }[]
    }
    return [cash, buyingPower, held.find(({ symbol }) => symbol === 'VTI')?.qty]
  }
  const place = async (input: object) =>
    (await investor.call(order, { symbol: 'VTI', ...input }, { at: clock() })).body
  const later = async () => {
    clock.forward(5_000)
    await settleOrders(services, quiet)
  }
  const findAlarm = async (id: unknown) =>
    (await openAlarms(database())).filter(({ objectId }) => objectId === id)

  const sell = { side: 'sell', notional: '50' }
  const buy = { side: 'buy', notional: '50' }
  const limitBuy = { ...buy, type: 'limit', limitPrice: '90' }
  const limitSell = { ...sell, type: 'limit', limitPrice: '110' }
  const fill = (filled_qty: string, filled_avg_price: string | null, more: object = {}) => ({
    status: 'filled',
    filled_qty,
    filled_avg_price,
    filled_at: '2026-11-20T12:00:00Z',
    ...more,
  })
  it.each([
    ['99 shares sold of half a share', sell, fill('99', '100'), 'quantity_beyond_order'],
    ['a sale at a thousand times the price', sell, fill('0.5', '100000'), 'price_implausible'],
    ['a sale at zero', sell, fill('0.5', null), 'filled_without_price'],
    ['a sale below its limit', limitSell, fill('0.4', '109'), 'price_beyond_limit'],
    ['a purchase without a price', buy, fill('0.5', null), 'filled_without_price'],
    ['a purchase at a price of zero', buy, fill('0.5', '0'), 'filled_without_price'],
    ['a million shares for the money', buy, fill('1000000', '0.00005'), 'price_implausible'],
    ['a purchase for more than its amount', buy, fill('2', '100'), 'cost_beyond_order'],
    ['a purchase above its limit', limitBuy, fill('0.5', '91'), 'price_beyond_limit'],
    ['a fill of zero', buy, fill('0', null), 'filled_nothing'],
    ['a rejection after a fill', buy, fill('0.1', '100', { status: 'rejected' }), 'rejected_after_fill'],
    ['a quantity of thirty digits', buy, fill('9'.repeat(30), '100'), 'unreadable'],
    ['a quantity with an exponent', buy, fill('1e3', '100'), 'unreadable'],
    ['a negative quantity', buy, fill('-1', '100'), 'unreadable'],
    [
      'a quantity that is a number',
      buy,
      { status: 'filled', filled_qty: 0.5, filled_avg_price: '100' },
      'unreadable',
    ],
    ['no quantity', buy, { status: 'filled', filled_qty: null }, 'unreadable'],
    ['another order', buy, fill('0.5', '100', { client_order_id: 'ord_other' }), 'another_order'],
    ['another symbol', buy, fill('0.5', '100', { symbol: 'AAPL' }), 'another_symbol'],
    ['another side', buy, fill('0.5', '100', { side: 'sell' }), 'another_side'],
  ])('reports with %s stop the order', async (_what, input, told, reason) => {
    const before = await holdings()
    lies = told
    const { id } = await place(input)
    expect(await findAlarm(id)).toMatchObject([{ domain: 'investing', reason, times: 1 }])
    const held = await holdings()
    expect([held[0], held[2]]).toEqual([before[0], before[2]])
    // No further request is sent, and nothing is released.
    requestCount = 0
    for (let round = 0; round < 3; round += 1) await later()
    expect(requestCount).toBe(0)
    expect(await findAlarm(id)).toMatchObject([{ reason, times: 1 }])
    expect(await holdings()).toEqual(held)
    const reserved = database().kysely.selectFrom('reservation').select('status')
    expect(
      await reserved.where('account_id', '=', investor.accountId).where('status', '=', 'reserved').execute(),
    ).toHaveLength(1)
    expect(await trialBalance(database())).toMatchObject({ balanced: true })
  })

  it.each([
    ['a quantity that falls', { filled_qty: '0.1' }, 'quantity_fell'],
    ['a value that falls', { filled_avg_price: '40', filled_qty: '0.21' }, 'value_fell'],
  ])(
    'reports that reverse with %s stop the order, which resumes when a person clears it',
    async (_what, change, reason) => {
      lies = fill('0.2', '100', { status: 'partially_filled' })
      const { id } = await place(buy)
      const [cash, , qty] = await holdings()
      expect([cash, qty]).toEqual(['280', '4.700000000'])
      lies = { ...lies, ...change }
      await later()
      expect(await findAlarm(id)).toMatchObject([{ reason, times: 1 }])
      expect((await holdings())[2]).toBe('4.700000000')
      lies = fill('0.5', '100')
      await later()
      expect((await holdings())[2]).toBe('4.700000000')
      const name = { domain: 'investing', objectId: String(id), reason } as const
      const resolution = { by: investor.accountId, note: 'The broker has corrected it.', at: clock() }
      expect(await resolveAlarm(database(), { ...name, ...resolution })).toBe(true)
      await later()
      expect(await holdings()).toEqual(['250', '250', '5.000000000'])
      expect(await findAlarm(id)).toEqual([])
    },
  )

  it('reports that are valid are booked as usual', async () => {
    await place(buy)
    expect((await holdings()).slice(0, 1)).toEqual(['250'])
    await place(sell)
    expect((await holdings()).slice(0, 1)).toEqual(['300'])
    expect(await openAlarms(database()).then((all) => all.filter(({ times }) => times > 1))).toEqual([])
  })
})
