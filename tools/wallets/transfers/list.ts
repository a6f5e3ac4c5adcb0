import { z } from 'zod'
import { pageMembers, toPage } from '../../../src/core/base/page.ts'
import { stablecoins } from '../../../src/core/money/money.ts'
import { requireCaller } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import {
  listTransfers,
  transferPage,
  transferStates,
} from '../../../src/rails/wallets/transfers/transfer-history.ts'
import { payeeAddress } from '../../../src/rails/wallets/transfers/transfer-members.ts'
import { nameContacts } from '../../../src/records/contacts/names.ts'

/** A time that can contain transfers. */
const moment = z.iso.datetime().refine((text) => text >= '1970', 'must not be before 1970')

export default defineTool({
  name: 'wallets.transfers.list',
  title: 'Transfers',
  summary: 'List the transfers from the wallet and its gasless ones, newest first.',
  description: 'For everything else that moved use GET /api/activity.',
  route: 'GET /api/wallets/transfers',
  who: 'account',
  scopes: ['wallets:read'],
  role: 'accountant',
  effect: 'read',
  mcp: true,
  csv: 'transfers',
  payee: 'destination',
  input: z.strictObject({
    ...pageMembers,
    state: z.enum(transferStates).optional().describe('Its state.'),
    asset: z.enum(stablecoins).optional().describe('Its token.'),
    destination: payeeAddress.optional().describe('Payee.'),
    from: moment.optional().describe('ISO 8601 UTC, inclusive.'),
    to: moment.optional().describe('Exclusive.'),
  }),
  output: transferPage,
  failures: ['not_found'],
  example: { state: 'confirmed', asset: 'USDC' },
  run: async (context, input) => {
    const accountId = requireCaller(context).account.id
    const page = await listTransfers(context.database, { accountId, filter: input, page: toPage(input) })
    return {
      ...page,
      transfers: await nameContacts(context, accountId, page.transfers, ({ destination }) => destination),
    }
  },
})
