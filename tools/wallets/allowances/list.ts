import { z } from 'zod'
import { cutPage, nextCursor, pageMembers, toPage } from '../../../src/core/base/page.ts'
import { chainInput } from '../../../src/core/money/chains.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { agentKinds, developerKinds, listKeys } from '../../../src/people/identity/keys/owned-keys.ts'
import { onChain } from '../../../src/providers/chain/chains.ts'
import { CARDS_AGENT } from '../../../src/providers/chain/port.ts'
import { allowanceView, viewAllowance } from '../../../src/rails/wallets/allowances/allowance-view.ts'
import { findOwnedWallet } from '../../../src/rails/wallets/store.ts'

/** Sorts before every key in the order of pages. */
const cards = { id: `key_${'z'.repeat(26)}` }

export default defineTool({
  name: 'wallets.allowances.list',
  title: 'Allowances',
  summary: 'List the on-chain allowances of cards and of the account’s keys.',
  description:
    'The cards’ allowance (`agentId: "cards"`) comes first, then the keys, newest first. Empty if the gateway signs for the wallet; its keys are then limited only by their spend policies.',
  route: 'GET /api/wallets/allowances',
  who: 'person',
  effect: 'read',
  input: z.strictObject({
    ...pageMembers,
    chain: chainInput.optional().describe('Default: the first of this deployment.'),
  }),
  output: z.strictObject({
    allowances: z.array(allowanceView).describe('One allowance for the cards and one per key.'),
    nextCursor,
  }),
  failures: ['chain_not_supported', 'provider_unavailable'],
  example: {},
  chain: (context, { chain }) => onChain(context, chain),
  run: async (context, input) => {
    const { database, chain } = context
    const accountId = requirePerson(context).account.id
    const page = toPage(input)
    const wallet = await findOwnedWallet(database, accountId)
    if (wallet === undefined || wallet.owner.kind === 'gateway') return { allowances: [], nextCursor: null }
    const kinds = [...agentKinds, ...developerKinds]
    const keys = await listKeys(database, { accountId, kinds, page })
    const { rows, nextCursor } = cutPage(page.after === null ? [cards, ...keys] : keys, page)
    const allowances = await Promise.all(
      rows.map(async ({ id }) => {
        const agentId = id === cards.id ? CARDS_AGENT : id
        return { agentId, allowance: await chain.readAllowance(wallet, agentId) }
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
