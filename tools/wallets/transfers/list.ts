import { z } from 'zod'
import { pageMembers, pageOf } from '../../../src/base/page.ts'
import { callerOf } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { stablecoins } from '../../../src/money/money.ts'
import {
  listTransfers,
  transferPage,
  transferStates,
} from '../../../src/wallets/transfers/transfer-history.ts'
import { evmAddress } from '../../../src/wallets/transfers/transfer-members.ts'

/** A time that can contain transfers. */
const moment = z.iso.datetime().refine((text) => text >= '1970', 'must not be before 1970')

export default defineTool({
  name: 'wallets.transfers.list',
  title: 'Transfers',
  summary: 'List the account’s transfers from the wallet and its gasless transfers, newest first.',
  description: 'Use it to find a transfer. For everything else that moved use GET /api/activity. Free.',
  route: 'GET /api/wallets/transfers',
  who: 'account',
  scopes: ['wallets:read'],
  effect: 'read',
  mcp: true,
  csv: 'transfers',
  input: z.strictObject({
    ...pageMembers,
    state: z.enum(transferStates).optional().describe('Filter by state.'),
    asset: z.enum(stablecoins).optional().describe('Filter by token.'),
    destination: evmAddress.optional().describe('Filter by EVM address of the payee.'),
    from: moment.optional().describe('Start of the period, inclusive, ISO 8601 UTC.'),
    to: moment.optional().describe('End of the period, exclusive, ISO 8601 UTC.'),
  }),
  output: transferPage,
  failures: [],
  example: { state: 'confirmed', asset: 'USDC' },
  run: ({ database, ...context }, input) => {
    const accountId = callerOf(context).account.id
    return listTransfers(database, { accountId, filter: input, page: pageOf(input) })
  },
})
