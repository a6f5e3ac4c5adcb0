import { z } from 'zod'
import { nextCursor, pageMembers, toPage } from '../../src/core/base/page.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { listPayments, listRequests } from '../../src/records/requests/store.ts'
import { requestView, viewRequest } from '../../src/records/requests/view.ts'

export default defineTool({
  name: 'requests.list',
  title: 'Requests',
  summary: 'List requests for money, newest first; a key sees its own.',
  description: 'Use it to see who has paid.',
  route: 'GET /api/requests',
  who: 'account',
  role: 'accountant',
  scopes: ['requests:read'],
  effect: 'read',
  mcp: true,
  input: z.strictObject(pageMembers),
  output: z.strictObject({ requests: z.array(requestView).describe('Those of this page.'), nextCursor }),
  failures: [],
  run: async (context, input) => {
    const caller = requireCaller(context)
    const { rows, nextCursor: next } = await listRequests(context.database, {
      accountId: caller.account.id,
      keyId: caller.kind === 'key' ? caller.key.id : null,
      page: toPage(input),
    })
    const payments = await listPayments(
      context.database,
      rows.map(({ id }) => id),
    )
    const seen = { now: context.onCalendar(context.now), origin: context.settings.origin }
    return {
      requests: rows.map((row) => viewRequest(row, payments.get(row.id) ?? [], seen)),
      nextCursor: next,
    }
  },
})
