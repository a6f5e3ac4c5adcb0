/** Weekly windows in which a key may spend, in a time zone. An end at or before the start is on the next day. */
import { z } from 'zod'

/** Days of the week as a policy writes them, by number from Sunday. */
const days = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const

const clockTime = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'must be a time of day from 00:00 to 23:59')

export const timeWindow = z.strictObject({
  days: z.array(z.enum(days)).min(1).max(7).describe('Days on which the window opens.'),
  start: clockTime.describe('Opening time, HH:MM.'),
  end: clockTime.describe('Closing time, HH:MM, exclusive. At or before `start`: on the next day.'),
  tz: z
    .string()
    .max(64)
    .refine(isTimeZone, 'must be an IANA time zone, such as Europe/Berlin')
    .describe('IANA time zone of both times, such as Europe/Berlin.'),
})
timeWindow.register(z.globalRegistry, { id: 'TimeWindow' })

export type TimeWindow = z.output<typeof timeWindow>

const DAY_MINUTES = 24 * 60
const MINUTE_MS = 60_000

export function isWithin(window: TimeWindow, at: Date): boolean {
  const { day, minute } = wallClock(at, window.tz)
  const { start, length } = toSpan(window)
  const sinceToday = minute - start
  const sinceYesterday = sinceToday + DAY_MINUTES
  return (
    (opensOn(window, day) && sinceToday >= 0 && sinceToday < length) ||
    (opensOn(window, (day + 6) % 7) && sinceYesterday < length)
  )
}

/** Finds the next opening of some windows after a moment at which all are closed; undefined if none ever opens. */
export function nextOpening(windows: readonly TimeWindow[], after: Date): Date | undefined {
  const openings = windows.flatMap((window) => {
    const { year, month, date } = wallClock(after, window.tz)
    return Array.from({ length: 8 }, (_, ahead) => {
      const wall = Date.UTC(year, month - 1, date + ahead) + toSpan(window).start * MINUTE_MS
      return { isOpening: opensOn(window, new Date(wall).getUTCDay()), at: toMoment(wall, window.tz) }
    })
      .filter(({ isOpening, at }) => isOpening && at > after.getTime())
      .map(({ at }) => at)
  })
  return openings.length === 0 ? undefined : new Date(Math.min(...openings))
}

/** Formats a window, such as `mon,tue 09:00-17:00 Europe/Berlin`. */
export function windowText({ days: open, start, end, tz }: TimeWindow): string {
  return `${open.join(',')} ${start}-${end} ${tz}`
}

function opensOn(window: TimeWindow, day: number): boolean {
  return window.days.some((name) => name === days[day])
}

function toSpan({ start, end }: TimeWindow): { start: number; length: number } {
  const [from, to] = [parseMinute(start), parseMinute(end)]
  return { start: from, length: to > from ? to - from : to - from + DAY_MINUTES }
}

function parseMinute(text: string): number {
  return Number(text.slice(0, 2)) * 60 + Number(text.slice(3))
}

/**
 * Finds the moment at which a zone's clock shows a wall time (given as if it were UTC). In a skipped hour: the moment
 * after it.
 */
function toMoment(wall: number, tz: string): number {
  const shift = (at: number) => {
    const { year, month, date, minute } = wallClock(new Date(at), tz)
    return Date.UTC(year, month - 1, date) + minute * MINUTE_MS - Math.floor(at / MINUTE_MS) * MINUTE_MS
  }
  const guess = wall - shift(wall)
  return wall - shift(guess)
}

// Creating a formatter is expensive. There are only some hundred time zones, so the cache stays small.
const formatters = new Map<string, Intl.DateTimeFormat>()

function wallClock(at: Date, tz: string) {
  const known = formatters.get(tz)
  const formatter =
    known ??
    new Intl.DateTimeFormat('en-US', {
      timeZone: tz,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
    })
  if (known === undefined) formatters.set(tz, formatter)
  const parts = new Map(formatter.formatToParts(at).map(({ type, value }) => [type, Number(value)]))
  const read = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? 0
  const [year, month, date] = [read('year'), read('month'), read('day')]
  return {
    year,
    month,
    date,
    day: new Date(Date.UTC(year, month - 1, date)).getUTCDay(),
    minute: read('hour') * 60 + read('minute'),
  }
}

function isTimeZone(text: string): boolean {
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: text })
    return true
  } catch {
    return false
  }
}
