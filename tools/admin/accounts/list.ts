import { z } from 'zod'
import { nextCursor, pageMembers, toPage } from '../../../src/core/base/page.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { findAccounts, foundAccount } from '../../../src/people/identity/find-accounts.ts'

export default defineTool({
  name: 'admin.accounts.list',
  title: 'Accounts',
  summary: 'Find accounts by id or by the start of their display name, newest first.',
  description:
    'For support: it shows ids, names and states, never an address or a document. Continue with `cursor`.',
  route: 'GET /api/admin/accounts',
  who: 'admin',
  effect: 'read',
  proof: 'step-up',
  input: z.strictObject({
    ...pageMembers,
    search: z
      .string()
      .trim()
      .min(1)
      .max(100)
      .optional()
      .describe('`acct_…`, or the start of the display name in any letter case.'),
  }),
  output: z.strictObject({
    accounts: z.array(foundAccount).describe('Accounts of this page, newest first.'),
    nextCursor,
  }),
  failures: [],
  example: { search: 'Ada' },
  run: ({ database }, { search = null, ...input }) => findAccounts(database, { search, page: toPage(input) }),
})
