import { z } from 'zod'
import { requireCaller } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { cancelOrder } from '../../../src/rails/investing/cancel-order.ts'
import { orderView, viewOrder } from '../../../src/rails/investing/order-view.ts'

export default defineTool({
  name: 'investing.orders.cancel',
  title: 'Cancel an order',
  summary: 'Cancel the unfilled part of an open order of your own, and release what it holds.',
  description: 'What was bought or sold stays.',
  restDescription:
    'Canceling again changes nothing. While the broker is unreachable the cancellation waits. `conflict`: the order has ended.',
  route: 'DELETE /api/investing/orders/{id}',
  who: 'account',
  scopes: ['investing:trade'],
  effect: 'write',
  proof: 'none',
  ownTransactions: true,
  mcp: true,
  stops: true,
  input: z.strictObject({ id: z.string().max(64).describe('`ord_…`') }),
  output: orderView,
  failures: ['not_found', 'conflict', 'provider_unavailable'],
  example: { id: 'ord_00000000000000000000000000' },
  run: async (context, { id }) => {
    const caller = requireCaller(context)
    const owner = { accountId: caller.account.id, keyId: caller.kind === 'key' ? caller.key.id : null }
    return viewOrder(await cancelOrder(context, { ...owner, id, at: context.now }))
  },
})
