/** Orphaned reservations: holds for an order whose process ended before it wrote a row. */
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { releaseSpend } from '../spending/release.ts'
import type { Database } from '../storage/database.ts'

/**
 * Releases orphaned reservations. `insertOrder` writes a row only while the reservation stands, and a released
 * reservation never stands again, so the two exclude each other.
 * @param before newer reservations may still get their row.
 */
export async function releaseUnplaced(
  { database, clock, log }: { database: Database; clock: Clock; log: Log },
  before: Date,
): Promise<void> {
  const orphans = await database.kysely
    .selectFrom('reservation')
    .innerJoin('decision', 'decision.id', 'reservation.decision_id')
    .leftJoin('investing_order', 'investing_order.decision_id', 'reservation.decision_id')
    .select('reservation.decision_id')
    .where('reservation.status', '=', 'reserved')
    .where('reservation.reserved_at', '<', before)
    .where('decision.operation', '=', 'investing.order')
    .where('investing_order.id', 'is', null)
    .limit(100)
    .execute()
  for (const { decision_id: decisionId } of orphans) {
    const verdict = await releaseSpend(database, { decisionId, at: clock() })
    log.warn({ decisionId, verdict }, 'a reservation without an order was released')
  }
}
