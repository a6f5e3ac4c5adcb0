import { z } from 'zod'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { readOwnPurchase } from '../../src/rails/buying/store.ts'
import { unsealDelivery, viewPurchase, wholePurchaseView } from '../../src/rails/buying/view.ts'
import { findReturned } from '../../src/records/recourse/store.ts'

export default defineTool({
  name: 'purchases.get',
  title: 'Purchase',
  summary: 'Read one purchase and what came.',
  description: 'Use it after `settlement_pending`, every few seconds.',
  route: 'GET /api/purchases/{id}',
  who: 'account',
  scopes: ['purchases:pay'],
  role: 'accountant',
  effect: 'read',
  mcp: true,
  verbatim: ['response'],
  input: z.strictObject({ id: z.string().max(64).describe('`buy_…`') }),
  output: wholePurchaseView,
  failures: ['not_found'],
  example: { id: 'buy_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const purchase = await readOwnPurchase(context.database, requireCaller(context), id)
    const returned = await findReturned(context.database, { kind: 'purchase', ids: [id] })
    return {
      ...viewPurchase(purchase, returned.get(id)),
      // Reading asks nobody.
      askedAgain: false,
      response: unsealDelivery(context.settings.dataKey, purchase),
    }
  },
})
