import type { Config } from '../../config/read-config.ts'
import type { Database } from '../../storage/database.ts'
import type { RateLimiter } from '../rate-limiter.ts'
import { createDatabaseRateLimiter } from './database.ts'
import { createMemoryRateLimiter } from './memory.ts'
import { createRedisRateLimiter } from './redis.ts'

/** Rate limits in Redis, else in PostgreSQL; in memory for the embedded database, which one process has to itself. */
export function createConfiguredRateLimiter(
  { redisUrl, databaseUrl }: Pick<Config, 'redisUrl' | 'databaseUrl'>,
  database: Database,
): { readonly rateLimiter: RateLimiter; readonly close: () => Promise<void> } {
  if (redisUrl === null && databaseUrl === null)
    return { rateLimiter: createMemoryRateLimiter(), close: async () => {} }
  const rateLimiter =
    redisUrl === null ? createDatabaseRateLimiter({ database }) : createRedisRateLimiter(redisUrl)
  return { rateLimiter, close: () => rateLimiter.close() }
}
