import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { findOwnPurchase } from '../../src/rails/buying/store.ts'
import { unsealDelivery, viewPurchase, wholePurchaseView } from '../../src/rails/buying/view.ts'

export default defineTool({
  name: 'purchases.get',
  title: 'Purchase',
  summary: 'Read one purchase and what came.',
  description: 'Use it after `settlement_pending`, every few seconds.',
  route: 'GET /api/purchases/{id}',
  who: 'account',
  scopes: ['purchases:pay'],
  effect: 'read',
  mcp: true,
  verbatim: ['response'],
  input: z.strictObject({ id: z.string().max(64).describe('`buy_…`') }),
  output: wholePurchaseView,
  failures: ['not_found'],
  example: { id: 'buy_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const caller = requireCaller(context)
    const purchase = await findOwnPurchase(context.database, {
      accountId: caller.account.id,
      keyId: caller.kind === 'key' ? caller.key.id : null,
      id,
    })
    if (purchase === undefined) throw new Failure('not_found', 'You have no such purchase.')
    return {
      ...viewPurchase(purchase),
      // Reading asks nobody.
      askedAgain: false,
      response: unsealDelivery(context.settings.dataKey, purchase),
    }
  },
})
