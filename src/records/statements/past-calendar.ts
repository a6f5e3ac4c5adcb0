/** The sandbox's calendar of the past: the ledger has the clock's times, and statements show the calendar's. */
import type { Connection } from '../../storage/database.ts'

/** What the calendar showed at each moment of the clock. */
export interface PastCalendar {
  readonly onCalendar: (at: Date) => Date
  /** First moment of the clock at which the calendar showed this time or a later one. */
  readonly onClock: (time: Date) => Date
}

/** The calendar of a database that none was ever set ahead in, such as production's. */
export const plainCalendar: PastCalendar = { onCalendar: (at) => at, onClock: (time) => time }

/** Reads how far the calendar was ahead, and since when. */
export async function readPastCalendar({ kysely }: Pick<Connection, 'kysely'>): Promise<PastCalendar> {
  const steps = await kysely
    .selectFrom('business_clock_step')
    .select(['at', 'ahead_ms'])
    .orderBy('ahead_ms')
    .execute()
  return createPastCalendar(steps.map(({ at, ahead_ms }) => ({ at, aheadMs: Number(ahead_ms) })))
}

/** @param steps in their order. Gateways' clocks differ a little: a step never lies before the one before it. */
export function createPastCalendar(
  steps: readonly { readonly at: Date; readonly aheadMs: number }[],
): PastCalendar {
  let latest = Number.NEGATIVE_INFINITY
  const spans = [{ since: latest, aheadMs: 0 }].concat(
    steps.map(({ at, aheadMs }) => {
      latest = Math.max(latest, at.getTime())
      return { since: latest, aheadMs }
    }),
  )
  const aheadAt = (ms: number) => spans.findLast(({ since }) => since <= ms)?.aheadMs ?? 0
  return {
    onCalendar: (at) => new Date(at.getTime() + aheadAt(at.getTime())),
    onClock: (time) => {
      const ms = time.getTime()
      const found = spans.find(({ aheadMs }, index) => {
        const end = spans[index + 1]?.since ?? Number.POSITIVE_INFINITY
        return ms < end + aheadMs
      })
      return new Date(Math.max(found?.since ?? ms, ms - (found?.aheadMs ?? 0)))
    },
  }
}
