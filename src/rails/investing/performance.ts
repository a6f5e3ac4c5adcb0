/**
 * Performance: equity over time and its time-weighted return. Deposits and withdrawals start a new period, so that
 * they never count as gain or loss. Pure: history and prices in, series out.
 * @see https://en.wikipedia.org/wiki/Time-weighted_return
 */
import { worthRoundedDown } from '../../core/money/shares.ts'
import type { History } from './history.ts'

export const timeframes = ['1D', '1W', '1M', '1Y', 'all'] as const

export type Timeframe = (typeof timeframes)[number]

const DAY = 86_400_000

/** Length of each window and its number of steps. */
const windows: Readonly<Record<Timeframe, { readonly spanMs: number; readonly steps: number }>> = {
  '1D': { spanMs: DAY, steps: 48 },
  '1W': { spanMs: 7 * DAY, steps: 56 },
  '1M': { spanMs: 30 * DAY, steps: 60 },
  '1Y': { spanMs: 365 * DAY, steps: 73 },
  all: { spanMs: Number.POSITIVE_INFINITY, steps: 100 },
}

/** Fraction digits of a return in percent, and the scale of its factors. */
export const PERCENT_DIGITS = 4
const SCALE = 10n ** 15n

/** A series. @property profitLossPct time-weighted, in ten-thousandths of a percent. Money in cents. */
export interface Performance {
  readonly baseValue: bigint
  readonly timestamp: readonly Date[]
  readonly equity: readonly bigint[]
  readonly profitLoss: readonly bigint[]
  readonly profitLossPct: readonly bigint[]
}

/** Moments of a series, and the cash flows between them. Prices are needed for all, in this order. */
export interface PerformanceTimes {
  readonly shown: readonly Date[]
  readonly all: readonly Date[]
}

/**
 * Selects the moments of a window. It starts no earlier than the account's first event and is empty without events.
 */
export function performanceTimes(history: History, timeframe: Timeframe, now: Date): PerformanceTimes {
  const { spanMs, steps } = windows[timeframe]
  const firsts = [history.cash[0], history.shares[0]].flatMap((event) => event?.at.getTime() ?? [])
  const first = Math.min(...firsts)
  if (!Number.isFinite(first) || first > now.getTime()) return { shown: [], all: [] }
  const start = Math.max(first, now.getTime() - spanMs)
  const step = (now.getTime() - start) / steps
  const shown = new Set(Array.from({ length: steps + 1 }, (_, at) => Math.round(start + at * step)))
  const flows = history.cash
    .filter(({ at, isFlow }) => isFlow && at.getTime() > start && at <= now)
    .map(({ at }) => at.getTime())
  const all = [...new Set([...shown, ...flows])].sort((one, other) => one - other)
  return { shown: [...shown].map((at) => new Date(at)), all: all.map((at) => new Date(at)) }
}

/** Computes the series. @param prices nano-dollar prices of every symbol in the history, at all moments. */
export function computePerformance(
  history: History,
  { shown, all }: PerformanceTimes,
  prices: ReadonlyMap<string, readonly bigint[]>,
): Performance {
  const isShown = new Set(shown.map((at) => at.getTime()))
  const symbols = [...new Set(history.shares.map(({ symbol }) => symbol))]
  const series = { equity: [] as bigint[], profitLoss: [] as bigint[], profitLossPct: [] as bigint[] }
  let [before, baseValue, flowed, factor] = [0n, 0n, 0n, SCALE]
  for (const [index, at] of all.entries()) {
    const equity =
      cashAt(history, at) +
      symbols.reduce(
        (sum, symbol) =>
          sum + worthRoundedDown(qtyAt(history, symbol, at), prices.get(symbol)?.[index] ?? 0n),
        0n,
      )
    if (index === 0) baseValue = equity
    else {
      const flow = flowAt(history, at)
      flowed += flow
      // Without equity there is no gain; the next deposit starts a period.
      if (before > 0n) factor = (factor * (equity - flow)) / before
    }
    before = equity
    if (!isShown.has(at.getTime())) continue
    series.equity.push(equity)
    series.profitLoss.push(equity - baseValue - flowed)
    series.profitLossPct.push(((factor - SCALE) * 100n * 10n ** BigInt(PERCENT_DIGITS)) / SCALE)
  }
  return { baseValue, timestamp: shown, ...series }
}

function cashAt({ cash }: History, moment: Date): bigint {
  return cash.reduce((sum, { at, cents }) => (at <= moment ? sum + cents : sum), 0n)
}

function flowAt({ cash }: History, moment: Date): bigint {
  return cash.reduce(
    (sum, { at, cents, isFlow }) => (isFlow && at.getTime() === moment.getTime() ? sum + cents : sum),
    0n,
  )
}

function qtyAt({ shares }: History, symbol: string, moment: Date): bigint {
  return shares.reduce(
    (sum, event) => (event.symbol === symbol && event.at <= moment ? sum + event.qty : sum),
    0n,
  )
}
