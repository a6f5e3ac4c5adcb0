import { z } from 'zod'
import { nextCursor, pageMembers, toPage } from '../../../src/core/base/page.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { listMessages, messageView } from '../../../src/records/notifications/inbox.ts'

export default defineTool({
  name: 'notifications.messages.list',
  title: 'Sent messages',
  summary: 'List what was sent to the owner’s channels, and what waits or failed, newest first.',
  description: 'Kept as long as events. Mails without a channel and messages to browsers are not kept.',
  route: 'GET /api/notifications/messages',
  who: 'person',
  effect: 'read',
  input: z.strictObject(pageMembers),
  output: z.strictObject({ messages: z.array(messageView).describe('Those of this page.'), nextCursor }),
  failures: [],
  example: {},
  run: (context, input) =>
    listMessages(context.database, { accountId: requirePerson(context).account.id, page: toPage(input) }),
})
