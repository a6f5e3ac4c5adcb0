import { z } from 'zod'
import { findMemos } from '../../../src/books/spending/spend-note.ts'
import { cutPage, nextCursor, pageMembers, toPage } from '../../../src/core/base/page.ts'
import { requireCaller } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { listPayouts, payoutView, viewPayout } from '../../../src/rails/banking/payout.ts'
import { findReturned } from '../../../src/records/recourse/store.ts'

export default defineTool({
  name: 'banking.payouts.list',
  title: 'Payouts',
  summary: 'List payouts to bank accounts, newest first; a key sees its own.',
  description: 'Use it to find a payout.',
  route: 'GET /api/banking/payouts',
  who: 'account',
  scopes: ['banking:pay'],
  role: 'accountant',
  effect: 'read',
  mcp: true,
  input: z.strictObject(pageMembers),
  output: z.strictObject({
    payouts: z.array(payoutView).describe('Payouts of this page, newest first.'),
    nextCursor,
  }),
  failures: [],
  example: {},
  run: async (context, input) => {
    const caller = requireCaller(context)
    const page = toPage(input)
    const keyId = caller.kind === 'key' ? caller.key.id : null
    const found = await listPayouts(context, { accountId: caller.account.id, keyId, page })
    const { rows, nextCursor } = cutPage(found, page)
    const decisions = rows.map(({ decisionId }) => decisionId)
    const memos = await findMemos(context.database, decisions)
    const ids = rows.map(({ id }) => id)
    const returned = await findReturned(context.database, { kind: 'payout', ids })
    const payouts = rows.map((row) =>
      viewPayout(row, {
        memo: memos.get(row.decisionId) ?? null,
        recourseId: returned.get(row.id)?.recourseId,
      }),
    )
    return { payouts, nextCursor }
  },
})
