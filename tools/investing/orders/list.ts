import { z } from 'zod'
import { cutPage, nextCursor, pageMembers, toPage } from '../../../src/core/base/page.ts'
import { requireCaller } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { orderView, viewOrder } from '../../../src/rails/investing/order-view.ts'
import { listOrders } from '../../../src/rails/investing/store.ts'

export default defineTool({
  name: 'investing.orders.list',
  title: 'Orders',
  summary: 'List the orders, newest first; a key sees its own.',
  description: '`accepted` and `partially_filled` are open.',
  route: 'GET /api/investing/orders',
  who: 'account',
  scopes: ['investing:read'],
  role: 'accountant',
  effect: 'read',
  mcp: true,
  input: z.strictObject({
    ...pageMembers,
    status: z.enum(['open', 'closed']).optional().describe('Its state.'),
  }),
  output: z.strictObject({
    orders: z.array(orderView).describe('Orders of this page, newest first.'),
    nextCursor,
  }),
  failures: [],
  example: { status: 'open' },
  run: async (context, { status, ...input }) => {
    const page = toPage(input)
    const caller = requireCaller(context)
    const owner = { accountId: caller.account.id, keyId: caller.kind === 'key' ? caller.key.id : null }
    const { rows, nextCursor } = cutPage(await listOrders(context.database, { ...owner, status, page }), page)
    return { orders: rows.map(viewOrder), nextCursor }
  },
})
