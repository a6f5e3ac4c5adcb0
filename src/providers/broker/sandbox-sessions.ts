/**
 * Opening hours of the sandbox market: always, with UTC days as sessions; or those of the New York Stock Exchange,
 * 9:30 to 16:00 in New York, with its holidays and early closes at 13:00.
 * @see https://www.nyse.com/markets/hours-calendars
 */

export type MarketHours = 'always' | 'nyse'

/** A session from opening (inclusive) to close (exclusive). */
export interface Session {
  readonly opensAt: Date
  readonly closesAt: Date
}

const DAY = 86_400_000

/** Finds the session open at a moment, or the next one. */
export function findSession(hours: MarketHours, at: Date): Session {
  for (let day = startOfDay(at) - DAY; ; day += DAY) {
    const session = sessionOn(hours, new Date(day))
    if (session !== undefined && session.closesAt > at) return session
  }
}

/** Finds the last moment up to `at` at which the market was open. */
export function lastTraded(hours: MarketHours, at: Date): Date {
  if (findSession(hours, at).opensAt <= at) return at
  for (let day = startOfDay(at); ; day -= DAY) {
    const session = sessionOn(hours, new Date(day))
    if (session !== undefined && session.closesAt <= at) return new Date(session.closesAt.getTime() - 1)
  }
}

/** @param day midnight UTC of a calendar day. */
function sessionOn(hours: MarketHours, day: Date): Session | undefined {
  if (hours === 'always') return { opensAt: day, closesAt: new Date(day.getTime() + DAY) }
  const [year, month, date] = [day.getUTCFullYear(), day.getUTCMonth() + 1, day.getUTCDate()]
  if ([0, 6].includes(day.getUTCDay()) || listHolidays(year).has(nameDate(month, date))) return undefined
  const closing = listEarlyCloses(year).has(nameDate(month, date)) ? 13 * 60 : 16 * 60
  return { opensAt: inNewYork(day, 9 * 60 + 30), closesAt: inNewYork(day, closing) }
}

function startOfDay(at: Date): number {
  return Math.floor(at.getTime() / DAY) * DAY
}

/**
 * A minute of a calendar day in New York: UTC-5, or UTC-4 from the second Sunday in March to the first Sunday in
 * November.
 */
function inNewYork(day: Date, minutes: number): Date {
  const year = day.getUTCFullYear()
  const summerFrom = Date.UTC(year, 2, nthWeekday(year, 3, 0, 2))
  const summerTo = Date.UTC(year, 10, nthWeekday(year, 11, 0, 1))
  const isSummer = day.getTime() >= summerFrom && day.getTime() < summerTo
  return new Date(day.getTime() + (minutes + (isSummer ? 4 : 5) * 60) * 60_000)
}

const nameDate = (month: number, date: number) => `${month}-${date}`

function listHolidays(year: number): ReadonlySet<string> {
  const easter = findEaster(year)
  const goodFriday = new Date(easter.getTime() - 2 * DAY)
  const lastMondayOfMay = 31 - ((new Date(Date.UTC(year, 4, 31)).getUTCDay() + 6) % 7)
  return new Set([
    // A New Year's Day on a Saturday is not observed on another day.
    ...(new Date(Date.UTC(year, 0, 1)).getUTCDay() === 6 ? [] : [nameObservedDay(year, 1, 1)]),
    nameDate(1, nthWeekday(year, 1, 1, 3)),
    nameDate(2, nthWeekday(year, 2, 1, 3)),
    nameDate(goodFriday.getUTCMonth() + 1, goodFriday.getUTCDate()),
    nameDate(5, lastMondayOfMay),
    ...(year >= 2022 ? [nameObservedDay(year, 6, 19)] : []),
    nameObservedDay(year, 7, 4),
    nameDate(9, nthWeekday(year, 9, 1, 1)),
    nameDate(11, nthWeekday(year, 11, 4, 4)),
    nameObservedDay(year, 12, 25),
  ])
}

/** Early closes: the trading days before Independence Day and Christmas, and the day after Thanksgiving. */
function listEarlyCloses(year: number): ReadonlySet<string> {
  return new Set([nameDate(7, 3), nameDate(11, nthWeekday(year, 11, 4, 4) + 1), nameDate(12, 24)])
}

/** Observed date of a holiday: Friday for a Saturday, Monday for a Sunday. */
function nameObservedDay(year: number, month: number, date: number): string {
  const day = new Date(Date.UTC(year, month - 1, date)).getUTCDay()
  const kept = new Date(Date.UTC(year, month - 1, date + (day === 6 ? -1 : day === 0 ? 1 : 0)))
  return nameDate(kept.getUTCMonth() + 1, kept.getUTCDate())
}

/** Date of a month's nth weekday (0 is Sunday). */
function nthWeekday(year: number, month: number, weekday: number, nth: number): number {
  const first = new Date(Date.UTC(year, month - 1, 1)).getUTCDay()
  return 1 + ((weekday - first + 7) % 7) + (nth - 1) * 7
}

/** Date of Easter Sunday. @see https://en.wikipedia.org/wiki/Date_of_Easter#Anonymous_Gregorian_algorithm */
function findEaster(year: number): Date {
  const a = year % 19
  const b = Math.floor(year / 100)
  const c = year % 100
  const h = (19 * a + b - Math.floor(b / 4) - Math.floor((b - Math.floor((b + 8) / 25) + 1) / 3) + 15) % 30
  const l = (32 + 2 * (b % 4) + 2 * Math.floor(c / 4) - h - (c % 4)) % 7
  const m = Math.floor((a + 11 * h + 22 * l) / 451)
  const days = h + l - 7 * m + 114
  return new Date(Date.UTC(year, Math.floor(days / 31) - 1, (days % 31) + 1))
}
