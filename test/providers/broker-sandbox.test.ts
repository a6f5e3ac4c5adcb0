import { describe, expect, it } from 'vitest'
import { dividendsBetween } from '../../src/providers/broker/sandbox-dividends.ts'
import { createFeed } from '../../src/providers/broker/sandbox-feed.ts'
import { instruments } from '../../src/providers/broker/sandbox-instruments.ts'
import { findSession, lastTraded } from '../../src/providers/broker/sandbox-sessions.ts'

const day = 86_400_000
const at = (text: string) => new Date(text)

describe('the sandbox’s feed', () => {
  const feed = createFeed('test')

  it('has at least 50 symbols, each once, with prices of its own', () => {
    expect(new Set(instruments.map(([symbol]) => symbol)).size).toBe(instruments.length)
    expect(instruments.length).toBeGreaterThanOrEqual(50)
    expect(feed('NOPE', at('2026-11-20T12:00:00Z'))).toBeUndefined()
  })

  it('is equal for equal seeds, and differs for others', () => {
    const moment = at('2026-11-20T12:34:56.789Z')
    expect(createFeed('test')('AAPL', moment)).toBe(feed('AAPL', at('2026-11-20T12:34:56Z')))
    expect(createFeed('other')('AAPL', moment)).not.toBe(feed('AAPL', moment))
  })

  it('moves without jumps, and stays near its reference', () => {
    for (const [symbol, , reference] of instruments) {
      const start = at('2026-11-20T12:00:00Z').getTime()
      const prices = Array.from({ length: 600 }, (_, second) =>
        Number(feed(symbol, new Date(start + second * 1_000)) ?? 0n),
      )
      const steps = prices.slice(1).map((price, index) => Math.abs(price / (prices[index] ?? 1) - 1))
      // A cent is the smallest possible step.
      expect(Math.max(...steps)).toBeLessThan(0.0005 + 0.01 / Number(reference))
      const now = (prices[0] ?? 0) / 1e9
      expect(now / Number(reference)).toBeGreaterThan(0.7)
      expect(now / Number(reference)).toBeLessThan(1.6)
    }
    const aDay = new Set(
      Array.from({ length: 24 }, (_, hour) =>
        feed('SPY', at(`2026-11-20T${String(hour).padStart(2, '0')}:00:00Z`)),
      ),
    )
    expect(aDay.size).toBeGreaterThan(20)
  })
})

describe('the sandbox’s sessions', () => {
  it('are UTC days if the market never closes', () => {
    const now = at('2026-11-21T23:59:59.999Z')
    expect(findSession('always', now)).toEqual({
      opensAt: at('2026-11-21T00:00:00Z'),
      closesAt: at('2026-11-22T00:00:00Z'),
    })
    expect(lastTraded('always', now)).toEqual(now)
  })

  it.each([
    ['a winter day', '2026-11-20T15:00:00Z', '2026-11-20T14:30:00Z', '2026-11-20T21:00:00Z'],
    ['a summer day', '2026-07-01T15:00:00Z', '2026-07-01T13:30:00Z', '2026-07-01T20:00:00Z'],
    ['the evening before', '2026-11-19T21:00:00Z', '2026-11-20T14:30:00Z', '2026-11-20T21:00:00Z'],
    ['a weekend', '2026-11-21T12:00:00Z', '2026-11-23T14:30:00Z', '2026-11-23T21:00:00Z'],
    [
      'Thanksgiving, and the half day after',
      '2026-11-26T15:00:00Z',
      '2026-11-27T14:30:00Z',
      '2026-11-27T18:00:00Z',
    ],
    ['Good Friday', '2026-04-03T15:00:00Z', '2026-04-06T13:30:00Z', '2026-04-06T20:00:00Z'],
    [
      'Independence Day on a Saturday',
      '2026-07-03T15:00:00Z',
      '2026-07-06T13:30:00Z',
      '2026-07-06T20:00:00Z',
    ],
    ['Juneteenth', '2026-06-19T15:00:00Z', '2026-06-22T13:30:00Z', '2026-06-22T20:00:00Z'],
    ['Memorial Day', '2026-05-25T15:00:00Z', '2026-05-26T13:30:00Z', '2026-05-26T20:00:00Z'],
    [
      'the Monday after clocks went forward',
      '2026-03-09T14:00:00Z',
      '2026-03-09T13:30:00Z',
      '2026-03-09T20:00:00Z',
    ],
    ['New Year', '2026-12-31T22:00:00Z', '2027-01-04T14:30:00Z', '2027-01-04T21:00:00Z'],
  ])('are New York’s: %s', (_name, now, opensAt, closesAt) => {
    expect(findSession('nyse', at(now))).toEqual({ opensAt: at(opensAt), closesAt: at(closesAt) })
  })

  it('keep the closing price while the market is closed', () => {
    expect(lastTraded('nyse', at('2026-11-22T12:00:00Z'))).toEqual(at('2026-11-20T20:59:59.999Z'))
    expect(lastTraded('nyse', at('2026-11-20T15:00:00Z'))).toEqual(at('2026-11-20T15:00:00Z'))
  })
})

describe('the sandbox’s dividends', () => {
  it('are paid four or twelve times a year, two weeks after their record date', () => {
    const year = dividendsBetween('2026-01-01', '2026-12-31')
    for (const [symbol, , , , perYear] of instruments)
      expect([symbol, year.filter((dividend) => dividend.symbol === symbol).length]).toEqual([
        symbol,
        perYear,
      ])
    for (const { recordDate, payDate } of year)
      expect(Date.parse(payDate) - Date.parse(recordDate)).toBe(14 * day)
    expect(year.find(({ symbol }) => symbol === 'O')?.perShare).toBe(263_000_000n)
  })
})
