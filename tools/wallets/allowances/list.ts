import { z } from 'zod'
import { nextCursor, onePage, pageMembers, pageOf } from '../../../src/base/page.ts'
import { agentKinds, developerKinds, listKeys } from '../../../src/identity/keys/owned-keys.ts'
import { personOf } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { CARDS_AGENT } from '../../../src/providers/chain.ts'
import { allowanceView, viewAllowance } from '../../../src/wallets/allowances/allowance-view.ts'
import { findOwnedWallet } from '../../../src/wallets/store.ts'

/** Stands before every key in the order of pages. */
const cards = { id: `key_${'z'.repeat(26)}` }

export default defineTool({
  name: 'wallets.allowances.list',
  title: 'Allowances',
  summary: 'List what the chain lets cards and each of the account’s keys spend from the wallet.',
  description:
    'The cards’ own allowance (`agentId: "cards"`) comes first, then the keys, newest first. Empty where the gateway signs for the wallet: spend policies alone limit its keys then.',
  route: 'GET /api/wallets/allowances',
  who: 'person',
  scopes: [],
  effect: 'read',
  mcp: false,
  input: z.strictObject(pageMembers),
  output: z.strictObject({
    allowances: z.array(allowanceView).describe('One for the cards and one for each key.'),
    nextCursor,
  }),
  failures: ['provider_unavailable'],
  example: {},
  run: async (context, input) => {
    const { database, chain } = context
    const accountId = personOf(context).account.id
    const page = pageOf(input)
    const wallet = await findOwnedWallet(database, accountId)
    if (wallet === undefined || wallet.owner.kind === 'gateway') return { allowances: [], nextCursor: null }
    const kinds = [...agentKinds, ...developerKinds]
    const keys = await listKeys(database, { accountId, kinds, page })
    const { rows, nextCursor } = onePage(page.after === null ? [cards, ...keys] : keys, page)
    const allowances = await Promise.all(
      rows.map(async ({ id }) => {
        const agentId = id === cards.id ? CARDS_AGENT : id
        return { agentId, allowance: await chain.allowanceOf(wallet, agentId) }
      }),
    )
    return {
      allowances: allowances.flatMap(({ agentId, allowance }) =>
        allowance === null ? [] : [viewAllowance({ agentId, ...allowance })],
      ),
      nextCursor,
    }
  },
})
