/** What was held for an order that then never got a row: its process ended between the two. */
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { releaseSpend } from '../spending/release.ts'
import type { Database } from '../storage/database.ts'

/**
 * Gives it back. An order's row is only ever written while its reservation stands (`insertOrder`), and a released reservation
 * never stands again: so the two cannot both happen. @param before reservations made since may still get their row.
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
