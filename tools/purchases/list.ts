import { z } from 'zod'
import { nextCursor, pageMembers, toPage } from '../../src/core/base/page.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { listPurchases } from '../../src/rails/buying/store.ts'
import { purchaseView, viewPurchase } from '../../src/rails/buying/view.ts'
import { findReturned } from '../../src/records/recourse/store.ts'

export default defineTool({
  name: 'purchases.list',
  title: 'Purchases',
  summary: 'List purchases of paid URLs, newest first; a key sees its own.',
  description: 'Use it to find a purchase.',
  route: 'GET /api/purchases',
  who: 'account',
  scopes: ['purchases:pay'],
  role: 'accountant',
  effect: 'read',
  mcp: true,
  input: z.strictObject(pageMembers),
  output: z.strictObject({
    purchases: z.array(purchaseView).describe('Purchases of this page.'),
    nextCursor,
  }),
  failures: [],
  run: async (context, input) => {
    const caller = requireCaller(context)
    const { rows, nextCursor: next } = await listPurchases(context.database, {
      accountId: caller.account.id,
      keyId: caller.kind === 'key' ? caller.key.id : null,
      page: toPage(input),
    })
    const ids = rows.map(({ id }) => id)
    const returned = await findReturned(context.database, { kind: 'purchase', ids })
    return { purchases: rows.map((row) => viewPurchase(row, returned.get(row.id))), nextCursor: next }
  },
})
