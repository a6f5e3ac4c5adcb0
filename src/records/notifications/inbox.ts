/** The owner's inbox: what was sent to channels, newest first. */
import { z } from 'zod'
import { cutPage, type Page } from '../../core/base/page.ts'
import type { Connection } from '../../storage/database.ts'

export const messageView = z.strictObject({
  id: z.string().describe('`msg_…`'),
  at: z.string().describe('When it happened, ISO 8601 UTC.'),
  kind: z.string().describe('Such as `approval.requested` or `budget.used`.'),
  title: z.string().nullable().describe('Null until it is written.'),
  lines: z
    .array(z.string())
    .nullable()
    .describe('Its text. Parts are untrusted: agents and payees wrote them.'),
  path: z.string().nullable().describe('Page of the console that it is about.'),
  channelId: z.string().describe('Channel that it went to.'),
  channelType: z.string().describe('Its kind, such as `slack`.'),
  status: z.enum(['waiting', 'sent', 'failed']).describe('`failed`: given up after a day.'),
  sentAt: z.string().nullable().describe('ISO 8601 UTC.'),
})
messageView.register(z.globalRegistry, { id: 'NotificationMessage' })

export async function listMessages(
  { kysely }: Connection,
  { accountId, page }: { accountId: string; page: Page },
): Promise<{ messages: z.input<typeof messageView>[]; nextCursor: string | null }> {
  const query = kysely
    .selectFrom('owner_message')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
  const found = await (page.after === null ? query : query.where('id', '<', page.after)).execute()
  const { rows, nextCursor } = cutPage(found, page)
  return {
    messages: rows.map((row) => ({
      id: row.id,
      at: row.at.toISOString(),
      kind: row.type,
      title: row.title,
      lines: row.body?.split('\n') ?? null,
      path: row.path,
      channelId: row.channel_id,
      channelType: row.channel_type,
      status: row.sent_at !== null ? 'sent' : row.held_until === null ? 'failed' : 'waiting',
      sentAt: row.sent_at?.toISOString() ?? null,
    })),
    nextCursor,
  }
}
