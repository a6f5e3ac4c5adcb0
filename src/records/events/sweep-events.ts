import { sql } from 'kysely'
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
    const { rows } = await sql<{ deleted: bigint }>`
      with old as materialized (
        select ctid, event_ids from event_publication where published_at < ${oldest} limit ${limit}
      ), gone as (
        delete from event_publication where ctid = any (array(select ctid from old)) returning 1
      ), events as (
        delete from event where id = any (array(select unnest(event_ids) from old))
      )
      select count(*) as deleted from gone`.execute(kysely)
    return rows[0]?.deleted ?? 0n
  })
}
