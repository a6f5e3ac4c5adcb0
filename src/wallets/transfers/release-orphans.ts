/** Money that was reserved for a transfer which then never got a row: its process ended between the two. */
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { releaseSpend } from '../../spending/release.ts'
import type { Database } from '../../storage/database.ts'

/**
 * Gives such money back. The row of a transfer is only ever written while its reservation stands (`insertTransfer`), and a
 * released reservation never stands again: so the two cannot both happen.
 * @param before reservations made since may still get their row.
 */
export async function releaseOrphans(
  { database, clock, log }: { database: Database; clock: Clock; log: Log },
  before: Date,
): Promise<void> {
  const orphans = await database.kysely
    .selectFrom('reservation')
    .innerJoin('decision', 'decision.id', 'reservation.decision_id')
    .leftJoin('transfer', 'transfer.decision_id', 'reservation.decision_id')
    .leftJoin('relay', 'relay.decision_id', 'reservation.decision_id')
    .select('reservation.decision_id')
    .where('reservation.status', '=', 'reserved')
    .where('reservation.reserved_at', '<', before)
    .where('decision.operation', 'in', ['wallets.transfer', 'transfers.gasless', 'x402.fx'])
    .where('transfer.id', 'is', null)
    .where('relay.id', 'is', null)
    .limit(100)
    .execute()
  for (const { decision_id: decisionId } of orphans) {
    const verdict = await releaseSpend(database, { decisionId, at: clock() })
    log.warn({ decisionId, verdict }, 'a reservation without a transfer was released')
  }
}
