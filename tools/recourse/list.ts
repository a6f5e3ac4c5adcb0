import { z } from 'zod'
import { nextCursor, pageMembers, toPage } from '../../src/core/base/page.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { listRecourse } from '../../src/records/recourse/store.ts'
import { listedRecourse, viewListed } from '../../src/records/recourse/view.ts'

export default defineTool({
  name: 'recourse.list',
  title: 'Recourse of all payments',
  summary: 'List recourse of payments, newest first; a key sees its own.',
  description: 'Use it to find one.',
  route: 'GET /api/recourse',
  who: 'account',
  scopes: [],
  role: 'accountant',
  effect: 'read',
  mcp: true,
  input: z.strictObject({
    objectId: z.string().max(64).optional().describe('Only of this payment.'),
    ...pageMembers,
  }),
  output: z.strictObject({
    recourse: z.array(listedRecourse).describe('Those of this page.'),
    nextCursor,
  }),
  failures: [],
  run: async (context, input) => {
    const caller = requireCaller(context)
    const { rows, nextCursor: next } = await listRecourse(context.database, {
      accountId: caller.account.id,
      keyId: caller.kind === 'key' ? caller.key.id : null,
      objectId: input.objectId,
      page: toPage(input),
    })
    return { recourse: rows.map(viewListed), nextCursor: next }
  },
})
