/** Periods of statements: a month, or days, in UTC. */
import { z } from 'zod'

const DAY_MS = 86_400_000
/** The longest period: a leap year. */
const MAX_DAYS = 366

/** @property to exclusive. */
export interface Period {
  readonly text: string
  readonly from: Date
  readonly to: Date
}

/** `2026-11`, or `2026-11-01..2026-11-15` with both days. */
export const period = z
  .string()
  .max(24)
  .transform((text, context): Period => {
    const found = parsePeriod(text)
    if (typeof found !== 'string') return found
    context.addIssue({ code: 'custom', message: found })
    return z.NEVER
  })

/** @returns what is wrong with it otherwise. */
function parsePeriod(text: string): Period | string {
  const month = /^(?<year>\d{4})-(?<month>0[1-9]|1[0-2])$/.exec(text)?.groups
  if (month !== undefined) {
    const [year, ordinal] = [Number(month.year), Number(month.month)]
    return { text, from: new Date(Date.UTC(year, ordinal - 1)), to: new Date(Date.UTC(year, ordinal)) }
  }
  const [first = '', last = '', ...rest] = text.split('..')
  const [from, end] = [parseDay(first), parseDay(last)]
  if (from === null || end === null || rest.length > 0)
    return 'must be a month such as 2026-11, or days such as 2026-11-01..2026-11-15'
  const to = new Date(end.getTime() + DAY_MS)
  if (to <= from) return 'must end on its first day or later'
  if (to.getTime() - from.getTime() > MAX_DAYS * DAY_MS) return `must be at most ${MAX_DAYS} days`
  return { text, from, to }
}

function parseDay(text: string): Date | null {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return null
  const day = new Date(`${text}T00:00:00.000Z`)
  // Days that no month has are read as days of the next one.
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text) ? day : null
}
