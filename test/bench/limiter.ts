/** Cost of counting one request: in memory, and in Redis next to a bare `INCR` on a connection of the same kind. */
import { Redis } from 'ioredis'
import { systemClock } from '../../src/core/base/clock.ts'
import { createMemoryRateLimiter } from '../../src/providers/rate-limiter/memory.ts'
import type { RateLimiter } from '../../src/providers/rate-limiter/port.ts'
import { createRedisRateLimiter } from '../../src/providers/rate-limiter/redis.ts'

const REQUESTS = 20_000
const CALLERS = 16
const limit = { count: 150, seconds: 60 }

/** Microseconds a request, with 16 callers. @property incr of a bare `INCR`; null without Redis. */
export interface LimiterFigures {
  readonly memory: number
  readonly redis: number | null
  readonly incr: number | null
}

/** Runs the benchmark: the best of three alternating rounds. @param redisUrl a Redis server, if there is one. */
export async function benchLimiter(redisUrl: string | undefined): Promise<LimiterFigures> {
  const memory = await best(takes(createMemoryRateLimiter()))
  if (redisUrl === undefined) return { memory, redis: null, incr: null }
  const limiter = createRedisRateLimiter(redisUrl)
  const bare = new Redis(redisUrl, { keyPrefix: 'bursar:bench:' })
  try {
    const rounds = { redis: Number.POSITIVE_INFINITY, incr: Number.POSITIVE_INFINITY }
    for (let round = 0; round < 3; round += 1) {
      rounds.incr = Math.min(rounds.incr, await micros((at) => bare.incr(`client:${at % 500}`)))
      rounds.redis = Math.min(rounds.redis, await micros(takes(limiter)))
    }
    return { memory, ...rounds }
  } finally {
    await limiter.close()
    bare.disconnect()
  }
}

const takes = (limiter: RateLimiter) => (at: number) =>
  limiter.take(`bench:203.0.113.${at % 500}`, limit, systemClock())

async function best(work: (at: number) => Promise<unknown>): Promise<number> {
  return Math.min(await micros(work), await micros(work), await micros(work))
}

async function micros(work: (at: number) => Promise<unknown>): Promise<number> {
  let next = 0
  const caller = async () => {
    for (let at = next++; at < REQUESTS; at = next++) await work(at)
  }
  const start = performance.now()
  await Promise.all(Array.from({ length: CALLERS }, caller))
  return ((performance.now() - start) * 1_000) / REQUESTS
}
