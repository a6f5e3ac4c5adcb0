/** Records webhooks that have no other effect, and webhooks that are deduplicated by their id. */
import type { Connection } from '../../../storage/database.ts'

/** Records a webhook; repeated calls have no effect. */
export async function recordWebhook(
  database: Connection,
  { provider, id, type, at }: { provider: string; id: string; type: string; at: Date },
): Promise<void> {
  await database.kysely
    .insertInto('webhook_event')
    .values({ provider, id, type, received_at: at })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

export async function isWebhookRecorded(
  database: Connection,
  { provider, id }: { provider: string; id: string },
): Promise<boolean> {
  const row = await database.kysely
    .selectFrom('webhook_event')
    .select('id')
    .where('provider', '=', provider)
    .where('id', '=', id)
    .executeTakeFirst()
  return row !== undefined
}
