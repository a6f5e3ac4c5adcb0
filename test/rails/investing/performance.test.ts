import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { History } from '../../../src/rails/investing/history.ts'
import { computePerformance, performanceTimes } from '../../../src/rails/investing/performance.ts'

const day = 86_400_000
const now = new Date('2026-11-20T12:00:00.000Z')
const ago = (days: number) => new Date(now.getTime() - days * day)
const dollar = 10n ** 9n
const flow = (days: number, cents: bigint) => ({ at: ago(days), cents, isFlow: true })

/** A history. @param priceAt of the one symbol, in dollars. */
function computeSeries(history: History, priceAt: (at: Date) => number, timeframe: '1M' | 'all' = '1M') {
  const moments = performanceTimes(history, timeframe, now)
  const prices = moments.all.map((at) => BigInt(Math.round(priceAt(at) * 1e9)))
  const series = computePerformance(history, moments, new Map([['VTI', prices]]))
  return { ...series, last: series.profitLossPct.at(-1), gain: series.profitLoss.at(-1) }
}

describe('performance', () => {
  const tenShares = { at: ago(40), symbol: 'VTI', qty: 10n * dollar }

  it('is empty before any activity', () => {
    expect(computeSeries({ cash: [], shares: [] }, () => 1)).toMatchObject({
      baseValue: 0n,
      timestamp: [],
      equity: [],
    })
  })

  it('equals the gain of the shares', () => {
    const doubled = computeSeries({ cash: [flow(40, 100_000n)], shares: [tenShares] }, (at) =>
      at < ago(10) ? 100 : 200,
    )
    // 1,000 in cash and 1,000 in shares: 3,000 in the end.
    expect([doubled.baseValue, doubled.equity.at(-1), doubled.gain, doubled.last]).toEqual([
      200_000n,
      300_000n,
      100_000n,
      500_000n,
    ])
    expect(doubled.timestamp).toHaveLength(61)
    expect(doubled.timestamp[0]).toEqual(ago(30))
  })

  it('excludes deposits and withdrawals', () => {
    const price = (at: Date) => (at < ago(15) ? 100 : 110)
    const plain = computeSeries({ cash: [], shares: [tenShares] }, price)
    expect(plain.last).toBe(100_000n)
    const moved = computeSeries({ cash: [flow(5, 900_000n), flow(2, -900_000n)], shares: [tenShares] }, price)
    expect([moved.last, moved.gain, moved.baseValue]).toEqual([plain.last, plain.gain, plain.baseValue])
    expect(moved.equity.some((cents) => cents > 900_000n)).toBe(true)
  })

  it('counts trades and dividends as gains, not as flows', () => {
    const trade = { at: ago(20), cents: -50_000n, isFlow: false }
    const dividend = { at: ago(10), cents: 1_000n, isFlow: false }
    const bought = { at: ago(20), symbol: 'VTI', qty: 5n * dollar }
    const series = computeSeries({ cash: [flow(40, 100_000n), trade, dividend], shares: [bought] }, () => 100)
    expect([series.gain, series.last]).toEqual([1_000n, 10_000n])
  })

  it('begins with the first event when the window is longer', () => {
    const series = computeSeries({ cash: [flow(7, 10_000n)], shares: [] }, () => 1)
    expect([series.timestamp[0], series.baseValue, series.last]).toEqual([ago(7), 10_000n, 0n])
  })

  it('does not depend on the time and size of deposits', () => {
    const flows = fc.array(
      fc.record({ days: fc.integer({ min: 0, max: 29 }), cents: fc.bigInt({ min: 1n, max: 10n ** 9n }) }),
      { maxLength: 8 },
    )
    fc.assert(
      fc.property(flows, (asked) => {
        // Without shares there is no gain.
        const cash = [flow(40, 1n), ...asked.map(({ days, cents }) => flow(days, cents))].sort(
          (one, other) => one.at.getTime() - other.at.getTime(),
        )
        const series = computeSeries({ cash, shares: [] }, () => 1)
        expect(new Set(series.profitLoss)).toEqual(new Set([0n]))
        expect(new Set(series.profitLossPct)).toEqual(new Set([0n]))
      }),
    )
  })
})
