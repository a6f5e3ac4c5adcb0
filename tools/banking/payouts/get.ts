import { z } from 'zod'
import { findMemos } from '../../../src/books/spending/spend-note.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requireCaller } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { findPayout, payoutView, viewPayout } from '../../../src/rails/banking/payout.ts'
import { findReturned } from '../../../src/records/recourse/store.ts'

export default defineTool({
  name: 'banking.payouts.get',
  title: 'Payout',
  summary: 'Read one payout.',
  description: 'Use it every few minutes while it is `pending` or `sent`.',
  route: 'GET /api/banking/payouts/{id}',
  who: 'account',
  scopes: ['banking:pay'],
  role: 'accountant',
  effect: 'read',
  mcp: true,
  input: z.strictObject({ id: z.string().max(64).describe('`out_…`') }),
  output: payoutView,
  failures: ['not_found'],
  example: { id: 'out_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const caller = requireCaller(context)
    const keyId = caller.kind === 'key' ? caller.key.id : null
    const payout = await findPayout(context, { accountId: caller.account.id, keyId, id })
    if (payout === undefined) throw new Failure('not_found', 'You have no such payout.')
    const { decisionId } = payout
    const memos = await findMemos(context.database, [decisionId])
    const returned = await findReturned(context.database, { kind: 'payout', ids: [id] })
    return viewPayout(payout, {
      memo: memos.get(decisionId) ?? null,
      recourseId: returned.get(id)?.recourseId,
    })
  },
})
