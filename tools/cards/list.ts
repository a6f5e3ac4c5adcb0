import { z } from 'zod'
import { cutPage, nextCursor, pageMembers, pageOf } from '../../src/base/page.ts'
import { cardView, viewCard } from '../../src/cards/card-view.ts'
import { listCards } from '../../src/cards/store.ts'
import { callerOf } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { decimalOf } from '../../src/money/money.ts'
import { sumOpenDebts } from '../../src/spending/debts.ts'

const owedView = z.strictObject({
  asset: z.string().describe('Currency of the debt.'),
  amount: z.string().describe('Decimal string of the currency.'),
})
owedView.register(z.globalRegistry, { id: 'CardDebt' })

export default defineTool({
  name: 'cards.list',
  title: 'Cards',
  summary: 'List the cards with their state, limits and controls, newest first; without card numbers.',
  description:
    'Use it to find a card’s id and what it may still pay for. Never contains card numbers. `owed` is a debt of the account: cards decline until it is paid.',
  route: 'GET /api/cards',
  who: 'account',
  scopes: ['cards:read'],
  effect: 'read',
  mcp: true,
  input: z.strictObject(pageMembers),
  output: z.strictObject({
    cards: z.array(cardView).describe('Cards of this page, newest first.'),
    owed: z
      .array(owedView)
      .optional()
      .describe(
        'Amounts the account owes because the gateway paid for it; absent if none. They are collected from the account’s assets, and cards decline until they are paid.',
      ),
    conversionSpreadBps: z.int().describe('Basis points that conversions between currencies cost.'),
    nextCursor,
  }),
  failures: [],
  example: {},
  run: async (context, input) => {
    const page = pageOf(input)
    const accountId = callerOf(context).account.id
    const [cards, owed] = await Promise.all([
      listCards(context.database, { accountId, page }),
      sumOpenDebts(context.database, accountId),
    ])
    const { rows, nextCursor } = cutPage(cards, page)
    const debt = owed.map((money) => ({ asset: money.asset, amount: decimalOf(money) }))
    return {
      cards: rows.map(viewCard),
      ...(debt.length === 0 ? {} : { owed: debt }),
      conversionSpreadBps: context.settings.cardSpreadBps,
      nextCursor,
    }
  },
})
