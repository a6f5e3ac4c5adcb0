import { z } from 'zod'
import { agentKinds, developerKinds, listKeys } from '../../../src/identity/owned-keys.ts'
import { personOf } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { nextCursor, onePage, pageMembers, pageOf } from '../../../src/page.ts'
import { allowanceView, viewAllowance } from '../../../src/wallets/allowance-view.ts'
import { findOwnedWallet } from '../../../src/wallets/store.ts'

export default defineTool({
  name: 'wallets.allowances.list',
  title: 'Allowances',
  summary: 'List what the chain lets each of the account’s keys spend from the wallet, newest key first.',
  description: 'Empty where the gateway signs for the wallet: spend policies alone limit its keys then.',
  route: 'GET /api/wallets/allowances',
  who: 'person',
  scopes: [],
  effect: 'read',
  mcp: false,
  input: z.strictObject(pageMembers),
  output: z.strictObject({ allowances: z.array(allowanceView).describe('One for each key.'), nextCursor }),
  failures: ['provider_unavailable'],
  example: {},
  run: async (context, input) => {
    const { database, chain } = context
    const accountId = personOf(context).account.id
    const page = pageOf(input)
    const wallet = await findOwnedWallet(database, accountId)
    if (wallet === undefined || wallet.owner.kind === 'gateway') return { allowances: [], nextCursor: null }
    const kinds = [...agentKinds, ...developerKinds]
    const { rows, nextCursor } = onePage(await listKeys(database, { accountId, kinds, page }), page)
    const allowances = await Promise.all(
      rows.map(async ({ id }) => ({ agentId: id, allowance: await chain.allowanceOf(wallet, id) })),
    )
    return {
      allowances: allowances.flatMap(({ agentId, allowance }) =>
        allowance === null ? [] : [viewAllowance({ agentId, ...allowance })],
      ),
      nextCursor,
    }
  },
})
