/** Windows in Redis: one atomic script per request or lease. */
import { createHash } from 'node:crypto'
import { Redis } from 'ioredis'
import { z } from 'zod'
import { randomToken } from '../../core/base/ids.ts'
import { namesSentinels, parseSentinels } from '../../core/base/redis-url.ts'
import { type LeasedRateLimiter, leasedRateLimiter } from './leased.ts'

/**
 * KEYS[1] window; ARGV count, window ms, now ms, expiry ms, whether rejected requests restart the window, counts to lease.
 * Returns the window's start and count, where limit + 1 means rejected and limit + 2 that an earlier rejection was ignored,
 * and the number of counts taken.
 */
const TAKE = `
local limit, length, now, lease = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[6])
local state = redis.call('HMGET', KEYS[1], 'opened', 'count')
local opened, count, taken = tonumber(state[1]), tonumber(state[2]), 1
if not opened or not count or now >= opened + length then
  opened, count = now, 1
elseif count + lease <= limit / 2 then
  count, taken = count + lease, lease
else
  if count > limit and ARGV[5] == 'restarts' then opened = now end
  count = math.min(count, limit + 1) + 1
end
redis.call('HSET', KEYS[1], 'opened', string.format('%d', opened), 'count', count)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return { opened, count, taken }`

/**
 * KEYS[1] window; ARGV window ms, now ms, process, number. Decrements the count of an open window. A command whose answer was
 * lost is sent again: each process numbers what it gives back, and a number counts once.
 */
const GIVE_BACK = `
local state = redis.call('HMGET', KEYS[1], 'opened', 'count', ARGV[3])
local opened, count, last = tonumber(state[1]), tonumber(state[2]), tonumber(state[3]) or 0
local now = tonumber(ARGV[2])
local isOpen = opened and count and now >= opened and now < opened + tonumber(ARGV[1])
if isOpen and count > 0 and tonumber(ARGV[4]) > last then
  redis.call('HSET', KEYS[1], 'count', count - 1, ARGV[3], ARGV[4])
end
return 0`

/** KEYS[1] window; ARGV when it opened in ms, unused counts, limit, process, number. */
const END_LEASE = `
local state = redis.call('HMGET', KEYS[1], 'opened', 'count', ARGV[4])
local opened, count, last = tonumber(state[1]), tonumber(state[2]), tonumber(state[3]) or 0
if opened == tonumber(ARGV[1]) and count and count <= tonumber(ARGV[3]) and tonumber(ARGV[5]) > last then
  redis.call('HSET', KEYS[1], 'count', math.max(count - tonumber(ARGV[2]), 0), ARGV[4], ARGV[5])
end
return 0`

const answer = z.tuple([z.number(), z.number(), z.number()])

/** Time limit per command; a slower limit counts as unreachable. */
const COMMAND_MS = 1000

/**
 * How long a connection with a pending answer may be silent before it is replaced, because connections can be lost
 * silently.
 */
const SILENCE_MS = 2 * COMMAND_MS

/** A connection to a Redis, or to the one that its Sentinels call primary. */
function connect(url: string): Redis {
  const options = {
    commandTimeout: COMMAND_MS,
    socketTimeout: SILENCE_MS,
    connectTimeout: SILENCE_MS,
    maxRetriesPerRequest: 1,
    keyPrefix: 'bursar:rate:',
  }
  if (!namesSentinels(url)) return new Redis(url, options)
  const { sentinels, name, username, password, database, isEncrypted } = parseSentinels(url)
  return new Redis({
    ...options,
    sentinels: [...sentinels],
    name,
    ...(username === '' ? {} : { username }),
    ...(password === '' ? {} : { password }),
    db: database,
    sentinelCommandTimeout: COMMAND_MS,
    // A primary that became a replica refuses writes without doing anything: asking the Sentinels again is safe.
    reconnectOnError: (error: Error) => (error.message.startsWith('READONLY') ? 2 : false),
    ...(isEncrypted ? { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true } : {}),
  })
}

/** The rate limiter port over Redis. @param url `redis://`, `rediss://`, or either with `+sentinel`. */
export function createRedisRateLimiter(url: string): LeasedRateLimiter {
  const redis = connect(url)
  // A lost connection also fails its pending command, which the caller reports; without a listener ioredis prints the
  // error.
  redis.on('error', () => {})
  const self = `returns of ${randomToken(16)}`
  let returns = 0
  const limiter = leasedRateLimiter({
    take: async (key, limit, now, lease) => {
      const windowMs = limit.seconds * 1000
      // Generous, because windows use the gateway's clock and only the expiry uses that of Redis.
      const expiryMs = 2 * windowMs + 60_000
      const restarts = limit.restarts === false ? 'stays' : 'restarts'
      const given = [1, key, limit.count, windowMs, now.getTime(), expiryMs, restarts, lease] as const
      const [openedMs, count, taken] = answer.parse(await evaluate(redis, TAKE, given))
      return { openedMs, count, taken }
    },
    giveBack: async (key, limit, now) => {
      returns += 1
      await evaluate(redis, GIVE_BACK, [1, key, limit.seconds * 1000, now.getTime(), self, returns])
    },
    endLease: async (key, limit, { openedAt, counts }) => {
      returns += 1
      await evaluate(redis, END_LEASE, [1, key, openedAt.getTime(), counts, limit.count, self, returns])
    },
  })
  return {
    ...limiter,
    close: async () => {
      await limiter.close()
      redis.disconnect()
    },
  }
}

/** Runs a script by its hash, which Redis knows after the first use. */
async function evaluate(
  redis: Redis,
  script: string,
  given: readonly [number, string, ...(number | string)[]],
): Promise<unknown> {
  const sha = createHash('sha1').update(script).digest('hex')
  return redis.evalsha(sha, ...given).catch((error: unknown) => {
    if (!isUnknownScript(error)) throw error
    return redis.eval(script, ...given)
  })
}

/** Detects a Redis without the script, for example after a restart. */
function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
