/**
 * Rate limits in the database, exact across all processes that share it: one upsert per request, serialized by the
 * row lock.
 */
import { callForRow, type Database, type Statement } from '../../storage/database.ts'
import type { RateLimiter } from '../rate-limiter.ts'
import { verdictOf } from './verdict.ts'

const take: Statement = {
  name: 'rate_window_take',
  text: 'select opened_at, count from rate_window_take($1, $2, $3, $4, $5)',
}

/** $1 keys, $2 counts, $3 seconds, $4 now. */
const takeAll: Statement = {
  name: 'rate_window_take_all',
  text: `select w.opened_at, w.count
    from unnest($1::text[], $2::bigint[], $3::bigint[]) with ordinality as q (key, count, seconds, place)
    cross join lateral rate_window_take(q.key, q.count::int, q.seconds::int, $4, true) w
    order by q.place`,
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
  readonly database: Pick<Database, 'call'>
}): RateLimiter {
  return {
    take: async (key, limit, now) => {
      const restarts = limit.restarts !== false
      const given = [key, limit.count, limit.seconds, now, restarts]
      const row = await callForRow<WindowRow>(database, take, given)
      return verdictOf({ openedMs: row.opened_at.getTime(), count: row.count }, limit, now)
    },
    takeAll: async (windows, now) => {
      const rows = await database.call<WindowRow>(takeAll, [
        windows.map(({ key }) => key),
        windows.map(({ limit }) => String(limit.count)),
        windows.map(({ limit }) => String(limit.seconds)),
        now,
      ])
      return windows.map(({ limit }, index) => {
        const row = rows[index]
        if (row === undefined) throw new Error('rate_window_take_all returned too few rows')
        return verdictOf({ openedMs: row.opened_at.getTime(), count: row.count }, limit, now)
      })
    },
    giveBack: async (key, limit, now) => {
      await database.call(giveBack, [key, limit.seconds, now])
    },
  }
}
