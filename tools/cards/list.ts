import { z } from 'zod'
import { cardView, viewCard } from '../../src/cards/card-view.ts'
import { listCards } from '../../src/cards/store.ts'
import { callerOf } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { nextCursor, onePage, pageMembers, pageOf } from '../../src/page.ts'

export default defineTool({
  name: 'cards.list',
  title: 'Cards',
  summary: 'List the cards with their state, limits and controls, newest first; never their numbers.',
  route: 'GET /api/cards',
  who: 'account',
  scopes: ['cards:read'],
  effect: 'read',
  mcp: true,
  input: z.strictObject(pageMembers),
  output: z.strictObject({ cards: z.array(cardView).describe('The cards.'), nextCursor }),
  failures: [],
  example: {},
  run: async (context, input) => {
    const page = pageOf(input)
    const cards = await listCards(context.database, { accountId: callerOf(context).account.id, page })
    const { rows, nextCursor } = onePage(cards, page)
    return { cards: rows.map(viewCard), nextCursor }
  },
})
