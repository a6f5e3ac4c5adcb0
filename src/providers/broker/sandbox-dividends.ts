/** The sandbox's dividend calendar: record dates derived from the symbol, paid two weeks later. */
import type { Dividend } from './port.ts'
import { hashText } from './sandbox-feed.ts'
import { instruments } from './sandbox-instruments.ts'

const DAY = 86_400_000
const PAID_AFTER_DAYS = 14

/** Converts a decimal with at most nine digits to nano-dollars. */
function toNanos(decimal: string): bigint {
  const [whole = '0', fraction = ''] = decimal.split('.')
  return BigInt(whole + fraction.padEnd(9, '0'))
}

/** Lists dividends with a record date in a range, inclusive. @param from `YYYY-MM-DD`. */
export function dividendsBetween(from: string, to: string): readonly Dividend[] {
  return instruments.flatMap(([symbol, , , dividend, perYear]) =>
    perYear === 0
      ? []
      : recordDates(symbol, perYear, { from, to }).map((recordDate) => ({
          symbol,
          perShare: toNanos(dividend),
          recordDate,
          payDate: toDay(Date.parse(recordDate) + PAID_AFTER_DAYS * DAY),
        })),
  )
}

function recordDates(symbol: string, perYear: 4 | 12, { from, to }: { from: string; to: string }): string[] {
  const everyMonths = 12 / perYear
  const [offset, date] = [hashText(symbol) % everyMonths, 1 + (hashText(`${symbol}:day`) % 14)]
  const [year = 0, month = 1] = from.split('-').map(Number)
  const dates: string[] = []
  for (let at = year * 12 + month - 1; ; at += 1) {
    const recordDate = toDay(Date.UTC(Math.floor(at / 12), at % 12, date))
    if (recordDate > to) return dates
    if (at % everyMonths === offset && recordDate >= from) dates.push(recordDate)
  }
}

function toDay(milliseconds: number): string {
  return new Date(milliseconds).toISOString().slice(0, 10)
}
