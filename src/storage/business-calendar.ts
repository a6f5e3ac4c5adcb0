/**
 * The calendar of one database: ahead of the clock by what was asked for, on every gateway. Each keeps what it has read, and reads
 * again when another gateway announces activity, or now and then.
 */
import { type Connection, callForRow, type Statement } from './database.ts'
import { keepPartitions } from './partitions.ts'

export interface BusinessCalendar {
  /** Time of the calendar at a moment of the clock. */
  readonly onCalendar: (at: Date) => Date
  /** Reads how far it is ahead; it never goes back. */
  readonly set: () => Promise<void>
  /** Sets it further ahead, and tells the other gateways. @param at moment of the clock. */
  readonly advance: (byMs: number, at: Date) => Promise<void>
}

const reading: Statement = {
  name: 'business_clock_read',
  text: 'select coalesce(max(ahead_ms), 0)::bigint as ahead_ms from business_clock',
}

const advancing: Statement = {
  name: 'business_clock_advance',
  text: `with advanced as (
      insert into business_clock as c (ahead_ms) values ($1) on conflict (id) do update set ahead_ms = c.ahead_ms + excluded.ahead_ms
      returning ahead_ms
    ), noted as (
      insert into business_clock_step (ahead_ms, at) select ahead_ms, $2 from advanced
    )
    select ahead_ms, pg_notify('bursar_activity', 'calendar')::text as told from advanced`,
}

export async function createBusinessCalendar(database: Pick<Connection, 'call'>): Promise<BusinessCalendar> {
  let aheadMs = 0
  const keep = ({ ahead_ms }: { ahead_ms: bigint }) => {
    aheadMs = Math.max(aheadMs, Number(ahead_ms))
  }
  const set = async () => keep(await callForRow<{ ahead_ms: bigint }>(database, reading, []))
  await set()
  return {
    onCalendar: (at) => (aheadMs === 0 ? at : new Date(at.getTime() + aheadMs)),
    set,
    advance: async (byMs, at) => {
      // Before the step, so that its first decision finds its partition.
      await keepPartitions(database, new Date(at.getTime() + aheadMs + byMs))
      keep(await callForRow<{ ahead_ms: bigint; told: string }>(database, advancing, [byMs, at]))
    },
  }
}
