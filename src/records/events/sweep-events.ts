import { deleteInPortions } from '../../core/base/portions.ts'
import type { Connection } from '../../storage/database.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/** Deletes events that were published before their retention, after their deliveries. Sequences are never used again. */
export async function sweepEvents(
  { kysely }: Connection,
  { now, days }: { now: Date; days: number },
): Promise<void> {
  const oldest = new Date(now.getTime() - days * DAY_MS)
  await deleteInPortions(async (limit) => {
    const old = kysely
      .selectFrom('webhook_delivery')
      .select('id')
      .where('created_at', '<', oldest)
      .limit(limit)
    return (await kysely.deleteFrom('webhook_delivery').where('id', 'in', old).executeTakeFirst())
      .numDeletedRows
  })
  await deleteInPortions(async (limit) => {
    const old = kysely.selectFrom('event').select('id').where('published_at', '<', oldest).limit(limit)
    return (await kysely.deleteFrom('event').where('id', 'in', old).executeTakeFirst()).numDeletedRows
  })
}
