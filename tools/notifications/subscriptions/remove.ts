import { z } from 'zod'
import { requirePerson } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { sendSecurityNotice } from '../../../src/people/identity/security-notices.ts'
import { deleteSubscription } from '../../../src/records/notifications/subscriptions.ts'

export default defineTool({
  name: 'notifications.subscriptions.remove',
  title: 'Unsubscribe a browser',
  summary: 'Stop push messages to a browser.',
  description:
    'Needs a recent proof, because a stolen session could otherwise silence the owner before it spends. Signing out needs none: it ends the messages to its own browser.',
  route: 'DELETE /api/notifications/subscriptions/{id}',
  who: 'person',
  effect: 'write',
  proof: 'recent',
  input: z.strictObject({ id: z.string().max(64).describe('`push_…`') }),
  output: z.strictObject({ deleted: z.boolean().describe('Always true.') }),
  failures: ['not_found'],
  example: { id: 'push_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const accountId = requirePerson(context).account.id
    await deleteSubscription(context.database, { accountId, id })
    await sendSecurityNotice(context, { accountId, notice: 'browser_removed', at: context.now })
    await recordChange(context, {
      action: 'push_subscription.deleted',
      object: { kind: 'push_subscription', id },
    })
    return { deleted: true }
  },
})
