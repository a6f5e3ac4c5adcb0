import { z } from 'zod'
import { sumOpenDebts } from '../../src/books/debts/debts.ts'
import { cutPage, nextCursor, pageMembers, toPage } from '../../src/core/base/page.ts'
import { type Stablecoin, toDecimal } from '../../src/core/money/money.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { cardDetails, viewCards } from '../../src/rails/cards/single-use.ts'
import { listCards } from '../../src/rails/cards/store.ts'
import { readEscrow } from '../../src/rails/wallets/escrow/escrow.ts'

const moneyView = z.strictObject({
  asset: z.string().describe('Its symbol.'),
  amount: z.string().describe('Decimal string.'),
})
moneyView.register(z.globalRegistry, { id: 'CardMoney' })

const escrowView = z.strictObject({
  ...moneyView.shape,
  chains: z
    .array(
      z.strictObject({
        chain: z.string().describe('Chain that it is on.'),
        asset: z.string().describe('Its symbol.'),
        amount: z.string().describe('Decimal string.'),
      }),
    )
    .optional()
    .describe('Its parts, if any is on another chain than the default.'),
})

export default defineTool({
  name: 'cards.list',
  title: 'Cards',
  summary: 'List the cards with their state, limits and controls, newest first.',
  description: '`owed` is a debt of the account: cards decline until it is paid. No card numbers.',
  route: 'GET /api/cards',
  who: 'account',
  scopes: ['cards:read'],
  role: 'accountant',
  effect: 'read',
  mcp: true,
  input: z.strictObject(pageMembers),
  output: z.strictObject({
    cards: z.array(cardDetails).describe('Newest first.'),
    owed: z
      .array(moneyView)
      .optional()
      .describe('Debts: collected from the account’s assets; cards decline until then. Absent if none.'),
    escrow: escrowView.describe('Backs approved purchases; the rest returns.'),
    conversionSpreadBps: z.int().describe('Basis points a conversion costs.'),
    nextCursor,
  }),
  failures: [],
  example: {},
  run: async (context, input) => {
    const page = toPage(input)
    const accountId = requireCaller(context).account.id
    const [cards, owed, escrow] = await Promise.all([
      listCards(context.database, { accountId, page }),
      sumOpenDebts(context.database, accountId),
      readEscrow(context.database, accountId),
    ])
    const { rows, nextCursor } = cutPage(cards, page)
    const debt = owed.map((money) => ({ asset: money.asset, amount: toDecimal(money) }))
    return {
      cards: await viewCards(context.database, rows),
      ...(debt.length === 0 ? {} : { owed: debt }),
      escrow: viewEscrow(escrow, context.chain.name),
      conversionSpreadBps: context.settings.cardSpreadBps,
      nextCursor,
    }
  },
})

/** The asset of which there is most, on all chains. */
function viewEscrow(
  parts: Awaited<ReturnType<typeof readEscrow>>,
  defaultChain: string,
): z.output<typeof escrowView> {
  const sumUnits = (asset: Stablecoin) =>
    parts.reduce((sum, part) => (part.asset === asset ? sum + part.units : sum), 0n)
  const most = parts
    .map(({ asset }) => ({ asset, units: sumUnits(asset) }))
    .reduce((first, other) => (other.units > first.units ? other : first), {
      asset: 'USDC' as Stablecoin,
      units: 0n,
    })
  const isElsewhere = parts.some(({ chain }) => chain !== defaultChain)
  const chains = parts.map(({ chain, ...money }) => ({ chain, asset: money.asset, amount: toDecimal(money) }))
  return { asset: most.asset, amount: toDecimal(most), ...(isElsewhere && { chains }) }
}
