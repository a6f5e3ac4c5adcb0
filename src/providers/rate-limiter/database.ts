/**
 * Rate limits in the database, exact across all processes that share it: one upsert per request, serialized by the
 * row lock.
 */
import type { Database, Statement } from '../../storage/database.ts'
import type { RateLimiter } from '../rate-limiter.ts'
import { verdictOf } from './verdict.ts'

const takeOne: Statement = {
  name: 'rate_window_take',
  // Windows are locked in the order of their keys, whatever the order of the requests.
  text: `
    select w.opened_at, w.count
    from (
      select *
      from rows from (jsonb_to_recordset($1::jsonb) as (key text, count int, seconds int, at timestamptz, restarts boolean))
        with ordinality as r
      order by r.key, r.ordinality
    ) q
    cross join lateral rate_window_take(q.key, q.count, q.seconds, q.at, q.restarts) w
    order by q.ordinality`,
}

/** $1 key, $2 seconds, $3 now. */
const giveBack: Statement = {
  name: 'rate_window_give_back',
  text: `
    update rate_window set count = greatest(count - 1, 0)
    where key = $1::text and $3::timestamptz < opened_at + make_interval(secs => $2::int)`,
}

interface WindowRow {
  readonly opened_at: Date
  readonly count: number
}

/** The rate limiter port over the table `rate_window`. */
export function createDatabaseRateLimiter({
  database,
}: {
  readonly database: Pick<Database, 'call' | 'gather'>
}): RateLimiter {
  const take: RateLimiter['take'] = async (key, limit, now) => {
    const { count, seconds } = limit
    const restarts = limit.restarts !== false
    const row = await database.gather<WindowRow>(takeOne, { key, count, seconds, at: now, restarts }, key)
    return verdictOf({ openedMs: row.opened_at.getTime(), count: row.count }, limit, now)
  }
  return {
    take,
    // Calls of the same moment share a round trip.
    takeAll: (windows, now) => Promise.all(windows.map(({ key, limit }) => take(key, limit, now))),
    giveBack: async (key, limit, now) => {
      await database.call(giveBack, [key, limit.seconds, now])
    },
  }
}
