import type { Connection } from '../storage/database.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/** Deletes events older than their retention. Sequences are never used again. */
export async function sweepEvents(
  { kysely }: Connection,
  { now, days }: { now: Date; days: number },
): Promise<void> {
  await kysely
    .deleteFrom('event')
    .where('at', '<', new Date(now.getTime() - days * DAY_MS))
    .execute()
}
