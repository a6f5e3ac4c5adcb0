import { z } from 'zod'
import { Failure } from '../../../src/failures/failure.ts'
import { unlockAccount } from '../../../src/identity/locks.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'

export default defineTool({
  name: 'admin.accounts.unlock',
  title: 'Unlock an account',
  summary: 'Unlock an account and end all its sessions; its keys and agents work again.',
  route: 'POST /api/admin/accounts/{id}/unlock',
  who: 'admin',
  scopes: [],
  effect: 'write',
  stepUp: true,
  mcp: false,
  input: z.strictObject({ id: z.string().max(64).describe('`acct_…`') }),
  output: z.strictObject({
    id: z.string().describe('`acct_…`'),
    status: z.literal('active').describe('New status of the account.'),
  }),
  failures: ['not_found'],
  example: { id: 'acct_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    if (!(await unlockAccount(context.database, { accountId: id, at: context.now })))
      throw new Failure('not_found', 'There is no such account.')
    await recordChange(context, {
      accountId: id,
      as: 'admin',
      action: 'account.unlocked',
      object: { kind: 'account', id },
    })
    return { id, status: 'active' as const }
  },
})
