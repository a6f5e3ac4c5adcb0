import { z } from 'zod'
import { cutPage, nextCursor, pageMembers, toPage } from '../../src/core/base/page.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { listTransactions, transactionView } from '../../src/rails/cards/list-transactions.ts'
import { findOwnCard } from '../../src/rails/cards/store.ts'
import { findReturned } from '../../src/records/recourse/store.ts'

export default defineTool({
  name: 'cards.transactions',
  title: 'Card transactions',
  summary: 'List the purchases of a card, approved and declined (`reason`), newest first.',
  description: 'Use it to see whether a purchase went through. `pending` is held, not yet cleared.',
  route: 'GET /api/cards/{id}/transactions',
  who: 'account',
  scopes: ['cards:read'],
  role: 'accountant',
  effect: 'read',
  mcp: true,
  input: z.strictObject({ id: z.string().max(64).describe('`card_…`'), ...pageMembers }),
  output: z.strictObject({
    transactions: z.array(transactionView).describe('Transactions of this page, newest first.'),
    nextCursor,
  }),
  failures: ['not_found'],
  example: { id: 'card_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id, ...input }) => {
    const { database } = context
    const card = await findOwnCard(database, { accountId: requireCaller(context).account.id, id })
    if (card === undefined) throw new Failure('not_found', 'You have no such card.')
    const page = toPage(input)
    const { rows, nextCursor } = cutPage(await listTransactions(database, { cardId: card.id, page }), page)
    const returned = await findReturned(database, {
      kind: 'card_transaction',
      ids: rows.map((row) => row.id),
    })
    const transactions = rows.map((row) => ({ ...row, recourseId: returned.get(row.id)?.recourseId ?? null }))
    return { transactions, nextCursor }
  },
})
