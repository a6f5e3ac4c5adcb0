/** Rate limits in Redis, exact across all processes that share it: one atomic script per request. */
import { createHash } from 'node:crypto'
import { Redis } from 'ioredis'
import { z } from 'zod'
import type { RateLimiter } from '../rate-limiter.ts'
import { verdictOf } from './verdict.ts'

/**
 * KEYS[1] window; ARGV count, window ms, now ms, expiry ms, whether rejected requests restart the window. Returns the
 * window's start and count: limit + 1 means rejected, limit + 2 means that an earlier rejection was ignored.
 */
const TAKE = `
local limit, length, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local state = redis.call('HMGET', KEYS[1], 'opened', 'count')
local opened, count = tonumber(state[1]), tonumber(state[2])
if not opened or not count or now >= opened + length then
  opened, count = now, 1
else
  if count > limit and ARGV[5] == 'restarts' then opened = now end
  count = math.min(count, limit + 1) + 1
end
redis.call('HSET', KEYS[1], 'opened', string.format('%d', opened), 'count', count)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return { opened, count }`

/** KEYS[1] window; ARGV window ms, now ms. Decrements the count of an open window. */
const GIVE_BACK = `
local state = redis.call('HMGET', KEYS[1], 'opened', 'count')
local opened, count = tonumber(state[1]), tonumber(state[2])
if opened and count and count > 0 and tonumber(ARGV[2]) < opened + tonumber(ARGV[1]) then
  redis.call('HINCRBY', KEYS[1], 'count', -1)
end
return { opened or 0, count or 0 }`

const answer = z.tuple([z.number(), z.number()])

/** Time limit per command; a slower limit counts as unreachable. */
const COMMAND_MS = 1000

/**
 * How long a connection with a pending answer may be silent before it is replaced, because connections can be lost
 * silently.
 */
const SILENCE_MS = 2 * COMMAND_MS

/** The rate limiter port over Redis. @param url `redis://` or `rediss://`. */
export function createRedisRateLimiter(url: string): RateLimiter & { close(): Promise<void> } {
  const redis = new Redis(url, {
    commandTimeout: COMMAND_MS,
    socketTimeout: SILENCE_MS,
    connectTimeout: SILENCE_MS,
    maxRetriesPerRequest: 1,
    keyPrefix: 'bursar:rate:',
  })
  // A lost connection also fails its pending command, which the caller reports; without a listener ioredis prints the
  // error.
  redis.on('error', () => {})
  const take: RateLimiter['take'] = async (key, limit, now) => {
    const windowMs = limit.seconds * 1000
    // Generous, because windows use the gateway's clock and only the expiry uses that of Redis.
    const expiryMs = 2 * windowMs + 60_000
    const restarts = limit.restarts === false ? 'stays' : 'restarts'
    const given = [1, key, limit.count, windowMs, now.getTime(), expiryMs, restarts] as const
    const [openedMs, count] = answer.parse(await evaluate(redis, TAKE, given))
    return verdictOf({ openedMs, count }, limit, now)
  }
  return {
    take,
    // Commands of one turn share a round trip.
    takeAll: (windows, now) => Promise.all(windows.map(({ key, limit }) => take(key, limit, now))),
    giveBack: async (key, limit, now) => {
      await evaluate(redis, GIVE_BACK, [1, key, limit.seconds * 1000, now.getTime()])
    },
    close: async () => {
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
