import { z } from 'zod'
import { cancelOrder } from '../../../src/investing/cancel-order.ts'
import { orderView, viewOrder } from '../../../src/investing/order-view.ts'
import { callerOf } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'

export default defineTool({
  name: 'investing.orders.cancel',
  title: 'Cancel an order',
  summary: 'Cancel what is not filled of an open order; what it holds is free again.',
  description:
    'A key cancels the orders that it placed. Canceling twice changes nothing. Where the broker cannot be reached the cancellation is kept and carried out later.',
  route: 'DELETE /api/investing/orders/{id}',
  who: 'account',
  scopes: ['investing:trade'],
  effect: 'write',
  ownTransactions: true,
  mcp: false,
  input: z.strictObject({ id: z.string().max(64).describe('`ord_…`') }),
  output: orderView,
  failures: ['not_found', 'conflict', 'provider_unavailable'],
  example: { id: 'ord_00000000000000000000000000' },
  run: async (context, { id }) => {
    const caller = callerOf(context)
    const owner = { accountId: caller.account.id, keyId: caller.kind === 'key' ? caller.key.id : null }
    return viewOrder(await cancelOrder(context, { ...owner, id, at: context.now }))
  },
})
