/** Windows in the database: one upsert per request or lease, serialized by the row lock. */
import type { Database, Statement } from '../../storage/database.ts'
import { type LeasedRateLimiter, leasedRateLimiter } from './leased.ts'

const takeOne: Statement = {
  name: 'rate_window_take',
  // Windows are locked in the order of their keys, whatever the order of the requests.
  text: `
    select w.opened_at, w.count, w.taken
    from (
      select *
      from rows from (jsonb_to_recordset($1::jsonb)
        as (key text, count int, seconds int, at timestamptz, restarts boolean, lease int)) with ordinality as r
      order by r.key, r.ordinality
    ) q
    cross join lateral rate_window_take(q.key, q.count, q.seconds, q.at, q.restarts, q.lease) w
    order by q.ordinality`,
}

/** $1 key, $2 seconds, $3 now. */
const giveBack: Statement = {
  name: 'rate_window_give_back',
  text: `
    update rate_window set count = greatest(count - 1, 0)
    where key = $1::text and $3::timestamptz >= opened_at
      and $3::timestamptz < opened_at + make_interval(secs => $2::int)`,
}

/** $1 key, $2 opened at, $3 unused counts, $4 the limit. */
const endLease: Statement = {
  name: 'rate_window_end_lease',
  text: `
    update rate_window set count = greatest(count - $3::int, 0)
    where key = $1::text and opened_at = $2::timestamptz and count <= $4::int`,
}

interface WindowRow {
  readonly opened_at: Date
  readonly count: number
  readonly taken: number
}

/** The rate limiter port over the table `rate_window`. */
export function createDatabaseRateLimiter({
  database,
}: {
  readonly database: Pick<Database, 'call' | 'gather'>
}): LeasedRateLimiter {
  return leasedRateLimiter({
    // Calls of the same moment share a round trip.
    take: async (key, limit, now, lease) => {
      const { count, seconds } = limit
      const asked = { key, count, seconds, at: now, restarts: limit.restarts !== false, lease }
      const row = await database.gather<WindowRow>(takeOne, asked, key)
      return { openedMs: row.opened_at.getTime(), count: row.count, taken: row.taken }
    },
    giveBack: async (key, limit, now) => {
      await database.call(giveBack, [key, limit.seconds, now])
    },
    endLease: async (key, limit, { openedAt, counts }) => {
      await database.call(endLease, [key, openedAt, counts, limit.count])
    },
  })
}
