import type { Connection } from '../storage/database.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/** Deletes events that were published before their retention, after their deliveries. Sequences are never used again. */
export async function sweepEvents(
  { kysely }: Connection,
  { now, days }: { now: Date; days: number },
): Promise<void> {
  const oldest = new Date(now.getTime() - days * DAY_MS)
  await kysely.deleteFrom('webhook_delivery').where('created_at', '<', oldest).execute()
  await kysely.deleteFrom('event').where('published_at', '<', oldest).execute()
}
