import type { Connection } from '../storage/database.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/**
 * Deletes events older than their retention, and their deliveries a day earlier, so that none is left without its event.
 * Sequences are never used again.
 */
export async function sweepEvents(
  { kysely }: Connection,
  { now, days }: { now: Date; days: number },
): Promise<void> {
  const oldest = now.getTime() - days * DAY_MS
  await kysely
    .deleteFrom('webhook_delivery')
    .where('created_at', '<', new Date(oldest + DAY_MS))
    .execute()
  await kysely.deleteFrom('event').where('at', '<', new Date(oldest)).execute()
}
