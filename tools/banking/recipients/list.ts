import { z } from 'zod'
import { cutPage, nextCursor, pageMembers, toPage } from '../../../src/core/base/page.ts'
import { requireCaller } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { listRecipients, recipientView, viewRecipient } from '../../../src/rails/banking/recipients.ts'

export default defineTool({
  name: 'banking.recipients.list',
  title: 'Recipients',
  summary: 'List the saved bank accounts that money can be paid out to, newest first.',
  description: 'Use it before a payout. Only the owner adds a recipient.',
  route: 'GET /api/banking/recipients',
  who: 'account',
  scopes: ['banking:pay'],
  effect: 'read',
  mcp: true,
  input: z.strictObject(pageMembers),
  output: z.strictObject({
    recipients: z.array(recipientView).describe('Recipients of this page, newest first.'),
    nextCursor,
  }),
  failures: [],
  example: {},
  run: async (context, input) => {
    const page = toPage(input)
    const accountId = requireCaller(context).account.id
    const { rows, nextCursor } = cutPage(await listRecipients(context, { accountId, page }), page)
    return { recipients: rows.map(viewRecipient), nextCursor }
  },
})
