/** The record of webhooks that had no effect. */
import type { Connection } from '../../storage/database.ts'

/** Remembers a webhook, once. */
export async function noteWebhook(
  database: Connection,
  { provider, id, type, at }: { provider: string; id: string; type: string; at: Date },
): Promise<void> {
  await database.kysely
    .insertInto('webhook_event')
    .values({ provider, id, type, received_at: at })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}
