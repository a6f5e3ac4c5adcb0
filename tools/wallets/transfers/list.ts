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

/** A moment that there have been transfers at. */
const moment = z.iso.datetime().refine((text) => text >= '1970', 'must not be before 1970')

export default defineTool({
  name: 'wallets.transfers.list',
  title: 'Transfers',
  summary:
    'List the transfers out of the wallet and the gasless ones of this account, newest first; also as CSV.',
  description:
    'With `Accept: text/csv` a page comes as CSV, and a Link header with rel="next" leads to the one after it.',
  route: 'GET /api/wallets/transfers',
  who: 'account',
  scopes: ['wallets:read'],
  effect: 'read',
  mcp: false,
  csv: 'transfers',
  input: z.strictObject({
    ...pageMembers,
    state: z.enum(transferStates).optional().describe('Only in this state.'),
    asset: z.enum(stablecoins).optional().describe('Only of this token.'),
    destination: evmAddress.optional().describe('Only to this EVM address.'),
    from: moment.optional().describe('Only those made at or after this moment, ISO 8601 UTC.'),
    to: moment.optional().describe('Only those made before this moment, ISO 8601 UTC.'),
  }),
  output: transferPage,
  failures: [],
  example: { state: 'confirmed', asset: 'USDC' },
  run: ({ database, ...context }, input) => {
    const accountId = callerOf(context).account.id
    return listTransfers(database, { accountId, filter: input, page: pageOf(input) })
  },
})
