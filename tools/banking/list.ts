import { z } from 'zod'
import { cutPage, nextCursor, pageMembers, toPage } from '../../src/core/base/page.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { viewVirtualAccount, virtualAccountView } from '../../src/rails/banking/open-account.ts'
import { listVirtualAccounts } from '../../src/rails/banking/store.ts'

export default defineTool({
  name: 'banking.list',
  title: 'Virtual accounts',
  summary: 'List the virtual bank accounts with their deposit instructions, newest first.',
  description: 'Use it for the details to give to somebody who pays by bank transfer.',
  restDescription: 'Deposits that arrived are in GET /api/activity.',
  route: 'GET /api/banking',
  who: 'account',
  scopes: ['banking:read'],
  role: 'accountant',
  effect: 'read',
  mcp: true,
  input: z.strictObject(pageMembers),
  output: z.strictObject({
    accounts: z.array(virtualAccountView).describe('Virtual accounts of this page, newest first.'),
    nextCursor,
  }),
  failures: [],
  example: {},
  run: async (context, input) => {
    const page = toPage(input)
    const accountId = requireCaller(context).account.id
    const { rows, nextCursor } = cutPage(
      await listVirtualAccounts(context.database, { accountId, page }),
      page,
    )
    return { accounts: rows.map(viewVirtualAccount), nextCursor }
  },
})
