/** Due times of a schedule, by the calendar of its time zone. Pure; luxon knows the zones, their clock changes and the months. */
import { DateTime, IANAZone } from 'luxon'

/**
 * A rule that makes due times. @property on ISO weekday, or day of the month (the last one where a month has fewer); null for days.
 * @property startsAt its wall clock in `tz` is that of every due time. One that a clock change skips is as much later; one that it
 * repeats is the first.
 */
export interface Recurrence {
  readonly unit: 'day' | 'week' | 'month'
  readonly step: number
  readonly on: number | null
  readonly tz: string
  readonly startsAt: Date
}

export function isTimeZone(name: string): boolean {
  return IANAZone.isValidZone(name)
}

/** The day of a start that a schedule without `on` keeps. */
export function findStartDay({ unit, tz, startsAt }: Omit<Recurrence, 'on' | 'step'>): number | null {
  const { weekday, day } = DateTime.fromJSDate(startsAt, { zone: tz })
  return unit === 'week' ? weekday : unit === 'month' ? day : null
}

/** The due time of an index, counted from zero: that of the first one that is not before the start. */
export function findDueTime({ unit, step, on, tz, startsAt }: Recurrence, index: number): Date {
  const start = DateTime.fromJSDate(startsAt, { zone: tz })
  const { year, month, day, hour, minute, second, millisecond } = start
  // Dates are counted where no day is shorter than another.
  const from = DateTime.utc(year, month, day)
  const date = countDate({ unit, on }, from, index * step)
  const due = DateTime.fromObject({ ...pickDate(date), hour, minute, second, millisecond }, { zone: tz })
  // Which of two equal times luxon takes depends on the day on which it is asked.
  return new Date(Math.min(...due.getPossibleOffsets().map((one) => one.toMillis())))
}

function countDate({ unit, on }: Pick<Recurrence, 'unit' | 'on'>, from: DateTime, count: number): DateTime {
  if (unit === 'day') return from.plus({ days: count })
  if (unit === 'week') return from.plus({ days: ((on ?? from.weekday) - from.weekday + 7) % 7, weeks: count })
  const wanted = on ?? from.day
  const isPast = Math.min(wanted, from.daysInMonth ?? 31) < from.day
  const first = from.set({ day: 1 }).plus({ months: count + (isPast ? 1 : 0) })
  return first.set({ day: Math.min(wanted, first.daysInMonth ?? 31) })
}

const pickDate = ({ year, month, day }: DateTime) => ({ year, month, day })

/** Longest of each unit, in days. */
const days = { day: 1, week: 7, month: 31 } as const
const DAY_MS = 86_400_000

/** The index of the first due time at the moment or later. @param isAfter only later. */
export function findIndex(recurrence: Recurrence, at: Date, { isAfter = false } = {}): number {
  const longestMs = days[recurrence.unit] * recurrence.step * DAY_MS
  // Never too late: at least so many have passed. A day of clock change is an hour longer.
  let index = Math.max(0, Math.floor((at.getTime() - recurrence.startsAt.getTime()) / longestMs) - 2)
  for (;;) {
    const due = findDueTime(recurrence, index)
    if (isAfter ? due > at : due >= at) return index
    index += 1
  }
}
