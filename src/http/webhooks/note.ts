/** The record of webhooks: of those without an effect, and of those that are known by it when they come again. */
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

/** Whether a webhook is remembered. */
export async function isNoted(
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
