import { z } from 'zod'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { lockForRecovery, unlockAccount } from '../../../src/people/identity/locks.ts'
import { releaseWaiting } from '../../../src/people/identity/recovery-reviews.ts'

export default defineTool({
  name: 'admin.accounts.unlock',
  title: 'Unlock an account',
  summary: 'Unlock an account and end all its sessions; its keys and agents work again.',
  description: 'The owner signs in again. Keys that were revoked stay revoked.',
  route: 'POST /api/admin/accounts/{id}/unlock',
  who: 'admin',
  effect: 'write',
  proof: 'step-up',
  input: z.strictObject({ id: z.string().max(64).describe('`acct_…`') }),
  output: z.strictObject({
    id: z.string().describe('`acct_…`'),
    status: z.literal('active').describe('New status of the account.'),
  }),
  failures: ['not_found'],
  example: { id: 'acct_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const { database, now: at } = context
    await lockForRecovery(database, id)
    if (!(await unlockAccount(database, { accountId: id, at })))
      throw new Failure('not_found', 'There is no such account.')
    const decidedBy = requirePerson(context).account.id
    await releaseWaiting(database, { accountId: id, decidedBy, reason: 'The account was unlocked.', at })
    await recordChange(context, {
      accountId: id,
      as: 'admin',
      action: 'account.unlocked',
      object: { kind: 'account', id },
    })
    return { id, status: 'active' as const }
  },
})
