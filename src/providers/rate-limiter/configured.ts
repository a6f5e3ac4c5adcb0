import type { Config } from '../../core/config/read-config.ts'
import type { Database } from '../../storage/database.ts'
import { createDatabaseRateLimiter } from './database.ts'
import { createMemoryRateLimiter } from './memory.ts'
import type { RateLimiter } from './port.ts'

/** Rate limits in Redis, whose client is loaded only then, else in PostgreSQL; in memory for the embedded database, which one process has to itself. */
export async function createConfiguredRateLimiter(
  { redisUrl, databaseUrl }: Pick<Config, 'redisUrl' | 'databaseUrl'>,
  database: Database,
): Promise<{ readonly rateLimiter: RateLimiter; readonly close: () => Promise<void> }> {
  if (redisUrl === null && databaseUrl === null)
    return { rateLimiter: createMemoryRateLimiter(), close: async () => {} }
  const rateLimiter =
    redisUrl === null
      ? createDatabaseRateLimiter({ database })
      : (await import('./redis.ts')).createRedisRateLimiter(redisUrl)
  return { rateLimiter, close: () => rateLimiter.close() }
}
