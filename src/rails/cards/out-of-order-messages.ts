/** Out-of-order messages: transaction messages that arrive before their authorization. */
import { sql } from 'kysely'
import { z } from 'zod'
import type { Connection } from '../../storage/database.ts'

/** Stores a transaction's raw message until its authorization arrives. */
export async function storeOutOfOrderMessage(
  database: Connection,
  { webhookId, token, message, at }: { webhookId: string; token: string; message: unknown; at: Date },
): Promise<void> {
  await database.kysely
    .insertInto('card_early')
    .values({
      webhook_id: webhookId,
      processor_token: token,
      message: JSON.stringify(message),
      received_at: at,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/**
 * Finds messages whose authorization has arrived, and those received before a moment. In random order: messages that wait for
 * the chain must not hold up all others, and each names all events of its transaction.
 */
export async function dueOutOfOrderMessages(
  database: Connection,
  { before, limit }: { before: Date; limit: number },
): Promise<readonly { webhookId: string; message: unknown; isTakenAsItIs: boolean }[]> {
  const rows = await database.kysely
    .selectFrom('card_early')
    .leftJoin('card_authorization', 'card_authorization.processor_token', 'card_early.processor_token')
    .select(['card_early.webhook_id', 'card_early.message', 'card_early.received_at'])
    .where(({ eb, or }) =>
      or([eb('card_authorization.id', 'is not', null), eb('card_early.received_at', '<', before)]),
    )
    .orderBy(sql`random()`)
    .limit(limit)
    .execute()
  return rows.map((row) => ({
    webhookId: row.webhook_id,
    message: z.unknown().parse(row.message),
    isTakenAsItIs: row.received_at < before,
  }))
}

export async function deleteOutOfOrderMessage(database: Connection, webhookId: string): Promise<void> {
  await database.kysely.deleteFrom('card_early').where('webhook_id', '=', webhookId).execute()
}
