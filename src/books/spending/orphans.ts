/**
 * Orphaned reservations: money held for an object whose process ended before it wrote the object's row. Such a row is
 * written only while its reservation stands, and a released reservation never stands again, so the two exclude each
 * other.
 */
import { sql } from 'kysely'
import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import type { Connection } from '../../storage/database.ts'
import { releaseSpend } from './release.ts'

/** Reservations per round. */
const BATCH = 100

/**
 * Reservations to look for.
 * @property operations that make them. @property tables any of which has a row of the object, by its decision.
 * @property before newer reservations may still get their row.
 */
export interface Orphans {
  readonly operations: readonly string[]
  readonly tables: readonly ('transfer' | 'relay' | 'investing_order' | 'payout' | 'purchase')[]
  readonly before: Date
}

/** @returns the ids of their decisions. */
export async function findOrphans(
  { kysely }: Connection,
  { operations, tables, before }: Orphans,
): Promise<string[]> {
  const rows = await kysely
    .selectFrom('reservation')
    .innerJoin('decision', 'decision.id', 'reservation.decision_id')
    .select('reservation.decision_id')
    .where('reservation.status', '=', 'reserved')
    // Money is reserved by the calendar, which the sandbox sets ahead.
    .where(
      'reservation.reserved_at',
      '<',
      sql<Date>`${before}::timestamptz + (select coalesce(max(c.ahead_ms), 0) from business_clock c) * interval '1 millisecond'`,
    )
    .where('decision.operation', 'in', operations)
    .where(({ and, exists, not }) =>
      and(
        tables.map((table) =>
          not(exists(sql`(select from ${sql.table(table)} w where w.decision_id = reservation.decision_id)`)),
        ),
      ),
    )
    .limit(BATCH)
    .execute()
  return rows.map(({ decision_id }) => decision_id)
}

/** Releases what is held for nothing. */
export async function releaseOrphans(
  { database, clock, log }: { database: Connection; clock: Clock; log: Pick<Log, 'warn'> },
  orphans: Orphans,
): Promise<void> {
  for (const decisionId of await findOrphans(database, orphans)) {
    const verdict = await releaseSpend(database, { decisionId, at: clock() })
    log.warn({ decisionId, verdict, tables: orphans.tables }, 'a reservation without its row was released')
  }
}
