import { z } from 'zod'
import { cutPage, nextCursor, pageMembers, toPage } from '../../../src/core/base/page.ts'
import { requireCaller } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { listSwaps, swapView, viewSwap } from '../../../src/rails/swaps/orders.ts'

export default defineTool({
  name: 'swaps.orders.list',
  title: 'Swaps',
  summary: 'List swaps, newest first; a key sees its own.',
  description: 'Use it to find a swap.',
  route: 'GET /api/swaps/orders',
  who: 'account',
  role: 'accountant',
  scopes: ['swaps:execute'],
  effect: 'read',
  mcp: false,
  input: z.strictObject(pageMembers),
  output: z.strictObject({
    orders: z.array(swapView).describe('Swaps of this page, newest first.'),
    nextCursor,
  }),
  failures: [],
  example: {},
  run: async (context, input) => {
    const caller = requireCaller(context)
    const page = toPage(input)
    const keyId = caller.kind === 'key' ? caller.key.id : null
    const found = await listSwaps(context.database, { accountId: caller.account.id, keyId, page })
    const { rows, nextCursor } = cutPage(found, page)
    return { orders: rows.map(viewSwap), nextCursor }
  },
})
