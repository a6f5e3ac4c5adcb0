/** Forgets what can no longer matter: spent nonces, idempotency keys older than a day, and closed windows of rate limits. */
import type { Clock } from '../clock.ts'
import { sweepNonces } from '../identity/store.ts'
import { sweepIdempotency } from '../spending/idempotency.ts'
import type { Database } from '../storage/database.ts'

/** Longer than any window of the contract. */
const WINDOW_MS = 24 * 60 * 60 * 1000

/** One round. */
export async function sweep({ database, clock }: { database: Database; clock: Clock }): Promise<void> {
  const now = clock()
  await sweepNonces(database, now)
  await sweepIdempotency(database, now)
  const closed = new Date(now.getTime() - WINDOW_MS)
  await database.kysely.deleteFrom('rate_window').where('opened_at', '<', closed).execute()
}
