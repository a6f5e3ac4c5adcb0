import { z } from 'zod'
import { Failure } from '../../../src/core/failures/failure.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { lockAccount, lockPerson } from '../../../src/people/identity/locks.ts'
import { cancelStoppedOrders } from '../../../src/rails/investing/stopped-orders.ts'

export default defineTool({
  name: 'admin.accounts.lock',
  title: 'Lock an account',
  summary: 'Lock an account at once, with all its sessions, keys and agents.',
  description: 'Use it when an account is in wrong hands. Its money stays where it is.',
  route: 'POST /api/admin/accounts/{id}/lock',
  who: 'admin',
  effect: 'write',
  proof: 'step-up',
  stops: true,
  input: z.strictObject({ id: z.string().max(64).describe('`acct_…`') }),
  output: z.strictObject({
    id: z.string().describe('`acct_…`'),
    status: z.literal('locked').describe('New status of the account.'),
  }),
  failures: ['not_found'],
  example: { id: 'acct_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const { database, now: at } = context
    if (!(await lockAccount(database, { accountId: id, reason: 'admin', at })))
      throw new Failure('not_found', 'There is no such account.')
    await lockPerson(database, { personId: id, reason: 'admin', at })
    context.afterCommit((database) => cancelStoppedOrders({ ...context, database }, id))
    await recordChange(context, {
      accountId: id,
      as: 'admin',
      action: 'account.locked',
      object: { kind: 'account', id },
      after: { reason: 'admin' },
    })
    return { id, status: 'locked' as const }
  },
})
