import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { lockAccount } from '../../../src/identity/locks.ts'
import { defineTool } from '../../../src/kernel/tool.ts'

export default defineTool({
  name: 'admin.accounts.lock',
  title: 'Lock an account',
  summary: 'Lock somebody’s account at once, with all its sessions, keys and agents.',
  route: 'POST /api/admin/accounts/{id}/lock',
  who: 'admin',
  scopes: [],
  effect: 'write',
  stepUp: true,
  mcp: false,
  input: z.strictObject({ id: z.string().max(64).describe('`acct_…`') }),
  output: z.strictObject({
    id: z.string().describe('`acct_…`'),
    status: z.literal('locked').describe('What it is now.'),
  }),
  failures: ['not_found'],
  example: { id: 'acct_01h455vb4pex5vsknk084sn02q' },
  run: async ({ database, now: at }, { id }) => {
    if (!(await lockAccount(database, { accountId: id, reason: 'admin', at })))
      throw new Failure('not_found', 'There is no such account.')
    return { id, status: 'locked' as const }
  },
})
