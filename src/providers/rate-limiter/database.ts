/**
 * Rate limits in the database, exact across all processes that share it: one upsert per request, serialized by the
 * row lock.
 */
import { callForRow, type Database, type Statement } from '../../storage/database.ts'
import type { RateLimiter } from '../rate-limiter.ts'
import { verdictOf } from './verdict.ts'

/**
 * $1 key, $2 count, $3 seconds, $4 now, $5 whether rejected requests restart the window; the first rejection never
 * does.
 */
const take: Statement = {
  name: 'rate_window_take',
  text: `
    insert into rate_window as w (key, opened_at, count) values ($1::text, $4::timestamptz, 1)
    on conflict (key) do update set
      opened_at = case
        when $4::timestamptz < w.opened_at + make_interval(secs => $3::int) and not ($5::boolean and w.count > $2::int)
          then w.opened_at
        else $4::timestamptz end,
      count = case
        when $4::timestamptz >= w.opened_at + make_interval(secs => $3::int) then 1
        else least(w.count, $2::int + 1) + 1 end
    returning opened_at, count`,
}

/** $1 key, $2 seconds, $3 now. */
const giveBack: Statement = {
  name: 'rate_window_give_back',
  text: `
    update rate_window set count = greatest(count - 1, 0)
    where key = $1::text and $3::timestamptz < opened_at + make_interval(secs => $2::int)`,
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
      const row = await callForRow<{ opened_at: Date; count: number }>(database, take, given)
      return verdictOf({ openedMs: row.opened_at.getTime(), count: row.count }, limit, now)
    },
    giveBack: async (key, limit, now) => {
      await database.call(giveBack, [key, limit.seconds, now])
    },
  }
}
