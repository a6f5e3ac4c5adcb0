/** Reads the sandbox's outbox of undelivered messages. */
import type { Message } from '../../../providers/messages/port.ts'
import type { Connection } from '../../../storage/database.ts'

/** Newest first. */
export async function readOutbox(
  database: Connection,
  { most }: { most: number },
): Promise<Omit<Message, 'subject'>[]> {
  const rows = await database.kysely
    .selectFrom('sandbox_message')
    .select(['channel', 'destination', 'code', 'body', 'sent_at'])
    .orderBy('sent_at', 'desc')
    .orderBy('id', 'desc')
    .limit(most)
    .execute()
  return rows.map(({ body, sent_at, ...row }) => ({ ...row, text: body, at: sent_at }))
}
