/** Forgets what can no longer matter: nonces of signatures that have expired, and idempotency keys older than a day. */
import type { Clock } from '../clock.ts'
import { sweepNonces } from '../identity/store.ts'
import { sweepIdempotency } from '../spending/idempotency.ts'
import type { Database } from '../storage/database.ts'

/** One round. */
export async function sweep({ database, clock }: { database: Database; clock: Clock }): Promise<void> {
  const now = clock()
  await sweepNonces(database, now)
  await sweepIdempotency(database, now)
}
