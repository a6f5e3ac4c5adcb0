/** Travel Rule data goes with the transfer that it was given for, and with no other. */
import { Failure } from '../failures/failure.ts'
import { releaseSpend } from '../spending/release.ts'
import type { Database } from '../storage/database.ts'
import { claimTravelRule } from './store.ts'

/**
 * Attaches data to a transfer whose money is reserved and of which the chain has not heard yet.
 * @param id of the data that the transfer was admitted with; null where it needs none.
 * @throws Failure `conflict` where another transfer took the data in the meantime: the money is free again.
 */
export async function attachTravelRule(
  { database, now }: { database: Database; now: Date },
  { id, decisionId }: { id: string | null; decisionId: string },
): Promise<void> {
  if (id === null || (await claimTravelRule(database, { id, decisionId }))) return
  await releaseSpend(database, { decisionId, at: now })
  throw new Failure('conflict', 'Another transfer took the Travel Rule data of this one; nothing was sent.', {
    decisionId,
    isFinal: true,
    hint: 'POST /api/compliance/travel-rule for each transfer, then send it with a new idempotency key.',
  })
}
