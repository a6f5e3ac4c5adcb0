import { testServerUrl } from '../engines.ts'

/** Redis of the tests, where the machine has one. */
export const redisUrl = process.env.TEST_REDIS_URL

/** The stores of a gateway's state. */
export const worlds = [
  { name: 'embedded parts', isReal: false, isThere: true },
  {
    name: 'PostgreSQL and Redis',
    isReal: true,
    isThere: testServerUrl !== undefined && redisUrl !== undefined,
  },
]
