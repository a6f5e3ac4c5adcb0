import { z } from 'zod'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requireCaller } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { findSwap, swapView, viewSwap } from '../../../src/rails/swaps/orders.ts'

export default defineTool({
  name: 'swaps.orders.get',
  title: 'Swap',
  summary: 'Read one swap.',
  description: 'Use it every few seconds while it is `submitted` or `bridging`.',
  route: 'GET /api/swaps/orders/{id}',
  who: 'account',
  role: 'accountant',
  scopes: ['swaps:execute'],
  effect: 'read',
  mcp: true,
  input: z.strictObject({ id: z.string().max(64).describe('`swp_…`') }),
  output: swapView,
  failures: ['not_found'],
  example: { id: 'swp_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const caller = requireCaller(context)
    const keyId = caller.kind === 'key' ? caller.key.id : null
    const swap = await findSwap(context.database, { accountId: caller.account.id, keyId, id })
    if (swap === undefined) throw new Failure('not_found', 'You have no such swap.')
    return viewSwap(swap)
  },
})
