import { beforeAll, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import { openAlarms } from '../../../src/books/alarms/alarms.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import type { Services } from '../../../src/kernel/context.ts'
import type { Dividend } from '../../../src/providers/broker/port.ts'
import { payDividends } from '../../../src/rails/investing/dividends.ts'
import order from '../../../tools/investing/order.ts'
import portfolio from '../../../tools/investing/portfolio.ts'
import { onBothEngines } from '../../engines.ts'
import { type SignedIn, signInAgain } from '../../people/identity/signed-in.ts'
import { movedClock, newInvestor, servicesWithMarket } from './scene.ts'

const day = 86_400_000
const shown = z.object({
  cash: z.string(),
  dividends: z.array(
    z.object({
      symbol: z.string(),
      qty: z.string(),
      amount: z.string(),
      status: z.string(),
      payDate: z.string(),
    }),
  ),
  performance: z.object({ series: z.object({ profitLoss: z.array(z.string()) }) }),
})

onBothEngines('dividends', (database) => {
  const clock = movedClock()
  let calendar: Dividend[] = []
  let services: Services
  let investor: SignedIn
  beforeAll(async () => {
    const market = await servicesWithMarket(database(), { clock, feed: () => 100_000_000_000n })
    const within = async (from: string, to: string) =>
      calendar.filter(({ recordDate }) => recordDate >= from && recordDate <= to)
    services = { ...market, broker: { ...market.broker, dividends: within } }
  })
  beforeEach(async () => {
    calendar = []
    clock.forward(day)
    investor = await newInvestor(services)
  })
  const dayAfter = (days: number) => new Date(clock().getTime() + days * day).toISOString().slice(0, 10)
  const show = async () => {
    const { call } = await signInAgain(services, investor.accountId, clock())
    const read = shown.parse((await call(portfolio, { timeframe: '1W', series: true }, { at: clock() })).body)
    return { ...read, gain: read.performance.series.profitLoss.at(-1) }
  }

  it('are announced, owed to holders at the end of the record date, and paid once', async () => {
    // 2.5 shares.
    calendar = [
      { symbol: 'VTI', perShare: 1_000_000_000n, recordDate: dayAfter(0), payDate: dayAfter(2) },
      { symbol: 'AAPL', perShare: 0n + 4_000_000n, recordDate: dayAfter(0), payDate: dayAfter(2) },
      { symbol: 'JNJ', perShare: 1_000_000_000n, recordDate: dayAfter(0), payDate: dayAfter(2) },
    ]
    // 1.5 shares of AAPL at 0.004 are less than a cent.
    expect((await show()).dividends).toEqual([
      { symbol: 'VTI', qty: '2.500000000', amount: '2.5', status: 'announced', payDate: dayAfter(2) },
    ])
    await payDividends(services)
    expect((await show()).cash).toBe('500')
    clock.forward(day)
    // Sold and bought after the record date: neither counts.
    const { call } = await signInAgain(services, investor.accountId, clock())
    await call(order, { symbol: 'VTI', side: 'sell', notional: '100' }, { at: clock() })
    await call(order, { symbol: 'JNJ', side: 'buy', notional: '100' }, { at: clock() })
    await payDividends(services)
    expect(await show()).toMatchObject({ cash: '500', dividends: expect.arrayContaining([]) })
    clock.forward(day)
    await Promise.all([payDividends(services), payDividends(services)])
    await payDividends(services)
    const paid = await show()
    expect(paid).toMatchObject({ cash: '502.5', gain: '2.5' })
    expect(paid.dividends.map(({ symbol, qty, amount, status }) => [symbol, qty, amount, status])).toEqual([
      ['VTI', '2.500000000', '2.5', 'paid'],
    ])
  })

  it('follow the record date however late the job runs', async () => {
    calendar = [
      { symbol: 'VTI', perShare: 2_000_000_000n, recordDate: dayAfter(-80), payDate: dayAfter(-60) },
    ]
    clock.forward(10 * day)
    await payDividends(services)
    expect(await show()).toMatchObject({ cash: '505' })
  })

  it.each([
    ['a share’s price twice over', { perShare: 10n ** 15n }, 'dividend_beyond_price'],
    ['thirty digits', { perShare: 10n ** 30n }, 'dividend_beyond_price'],
    ['a negative amount', { perShare: -1n }, 'dividend_beyond_price'],
    ['a payment before its record date', { payDate: '2001-01-01' }, 'dividend_paid_at_no_time'],
  ])('dividends that are announced with %s are not paid, and delay no other', async (_what, lie, reason) => {
    const honest = {
      symbol: 'AAPL',
      perShare: 2_000_000_000n,
      recordDate: dayAfter(-9),
      payDate: dayAfter(-1),
    }
    const faultyBroker = {
      symbol: 'VTI',
      perShare: 2_000_000_000n,
      recordDate: dayAfter(-8),
      payDate: dayAfter(-1),
      ...lie,
    }
    calendar = [faultyBroker, honest]
    const rows = async (symbol: string) =>
      (
        await database()
          .kysely.selectFrom('dividend')
          .select('pay_date')
          .where('symbol', '=', symbol)
          .execute()
      ).length
    const [before, others] = [await rows('VTI'), await rows('AAPL')]
    await payDividends(services)
    await payDividends(services)
    expect(await rows('VTI')).toBe(before)
    expect(await rows('AAPL')).toBeGreaterThan(others)
    const raised = (await openAlarms(database())).filter(
      ({ objectId }) => objectId === `VTI:${faultyBroker.recordDate}`,
    )
    expect(raised.map((alarm) => alarm.reason)).toContain(reason)
  })

  it('dividends with one record date are all paid, and none twice after a correction by the broker', async () => {
    const dates = { recordDate: dayAfter(0), payDate: dayAfter(2) }
    const regular = { symbol: 'VTI', perShare: 1_000_000_000n, ...dates }
    const special = { symbol: 'VTI', perShare: 400_000_000n, ...dates }
    calendar = [regular, regular]
    clock.forward(day)
    await payDividends(services)
    calendar = [regular, regular, special]
    await payDividends(services)
    calendar = [regular, regular, { ...special, perShare: 800_000_000n }]
    await payDividends(services)
    clock.forward(day)
    await payDividends(services)
    await payDividends(services)
    // 2.5 shares: twice 2.5, and 1.
    expect(await show()).toMatchObject({ cash: '506' })
  })

  it('leave balanced books', async () => {
    expect(await trialBalance(database())).toMatchObject({ balanced: true })
  })
})
