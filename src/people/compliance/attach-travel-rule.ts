/** Attaches Travel Rule data to the one transfer it was given for. */

import { releaseSpend } from '../../books/spending/release.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Database } from '../../storage/database.ts'
import { claimTravelRule } from './store.ts'

/**
 * Attaches data to a transfer whose money is reserved and that was not yet submitted to the chain.
 * @param id data the transfer was admitted with; null when none is needed.
 * @throws Failure `conflict` when another transfer used the data in the meantime; the money is available again.
 */
export async function attachTravelRule(
  { database, now }: { database: Database; now: Date },
  { id, decisionId }: { id: string | null; decisionId: string },
): Promise<void> {
  if (id === null || (await claimTravelRule(database, { id, decisionId }))) return
  await releaseSpend(database, { decisionId, at: now })
  throw new Failure(
    'conflict',
    'Another transfer has used the Travel Rule data of this one; nothing was sent.',
    {
      decisionId,
      isFinal: true,
      hint: 'POST /api/compliance/travel-rule for each transfer, then send it with a new idempotency key.',
    },
  )
}
