/** Times in the reader's zone and language. */
import { digits } from './digits.ts'

/** `14:41` today, `Fri 14:41` this week, `18 Nov` this year, otherwise with the year. */
export function formatWhen(iso: string, now = new Date()): string {
  const at = new Date(iso)
  const clock = at.toLocaleTimeString(undefined, { ...digits, hour: '2-digit', minute: '2-digit' })
  if (at.toDateString() === now.toDateString()) return clock
  const days = (now.getTime() - at.getTime()) / 86_400_000
  if (days >= 0 && days < 6) return `${at.toLocaleDateString(undefined, { weekday: 'short' })} ${clock}`
  return formatDay(iso, now)
}

/** `18 Nov`, with the year if it is another one. */
export function formatDay(iso: string, now = new Date()): string {
  const at = new Date(iso)
  const isThisYear = at.getFullYear() === now.getFullYear()
  return at.toLocaleDateString(undefined, {
    ...digits,
    day: 'numeric',
    month: 'short',
    ...(isThisYear ? {} : { year: 'numeric' }),
  })
}

/** The whole moment with the zone, for details. */
export function formatMoment(iso: string): string {
  return new Date(iso).toLocaleString(undefined, { ...digits, dateStyle: 'medium', timeStyle: 'medium' })
}

/** `42 min left`, `3 h left`; `over` once it has passed. */
export function formatLeft(iso: string, now = new Date()): string {
  const seconds = Math.round((new Date(iso).getTime() - now.getTime()) / 1000)
  return seconds <= 0 ? 'over' : `${formatSpan(seconds)} left`
}

/** `40 s`, `42 min`, `10 h 17 min`, `3 days`. */
export function formatSpan(seconds: number): string {
  if (seconds < 60) return `${Math.max(seconds, 1)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 24) return minutes % 60 === 0 || hours >= 6 ? `${hours} h` : `${hours} h ${minutes % 60} min`
  const days = Math.floor(hours / 24)
  return days === 1 ? '1 day' : `${days} days`
}

const LABELS = 4
const DAY_SECONDS = 86_400

/**
 * Labels of four moments at equal distances, for the line under a chart: clock times within two days, days within a year,
 * otherwise months. The last is `Now` or `Today` where it is.
 * @param from and to in seconds
 */
export function labelTimes(from: number, to: number, now = new Date()): readonly string[] {
  const span = to - from
  const words = Array.from({ length: LABELS }, (_, position) => {
    const at = new Date((from + (span * position) / (LABELS - 1)) * 1000)
    const isNow = position === LABELS - 1 && Math.abs(now.getTime() - at.getTime()) < 3_600_000
    if (span < 2 * DAY_SECONDS)
      return isNow
        ? 'Now'
        : at.toLocaleTimeString(undefined, { ...digits, hour: '2-digit', minute: '2-digit' })
    if (isNow) return 'Today'
    return span < 300 * DAY_SECONDS
      ? formatDay(at.toISOString(), now)
      : at.toLocaleDateString(undefined, { ...digits, month: 'short', year: 'numeric' })
  })
  // A short past has fewer different days than labels.
  return words.filter((word, position) => words.indexOf(word) === position)
}
