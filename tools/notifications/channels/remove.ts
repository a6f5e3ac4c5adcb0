import { z } from 'zod'
import { requirePerson } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { sendSecurityNotice } from '../../../src/people/identity/security-notices.ts'
import { deleteChannel } from '../../../src/records/notifications/channels.ts'
import { deleteSubscription } from '../../../src/records/notifications/subscriptions.ts'

export default defineTool({
  name: 'notifications.channels.remove',
  title: 'Remove a channel',
  summary: 'Stop messages to a channel, and forget its secret.',
  description:
    'Needs a recent proof, because a stolen session could otherwise silence the owner before it spends. What was sent stays in the inbox.',
  route: 'DELETE /api/notifications/channels/{id}',
  who: 'person',
  effect: 'write',
  proof: 'recent',
  input: z.strictObject({ id: z.string().max(64).describe('`ntf_…`, or `push_…`') }),
  output: z.strictObject({ deleted: z.boolean().describe('Always true.') }),
  failures: ['not_found'],
  example: { id: 'ntf_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const accountId = requirePerson(context).account.id
    const isBrowser = id.startsWith('push_')
    await (isBrowser ? deleteSubscription : deleteChannel)(context.database, { accountId, id })
    await sendSecurityNotice(context, {
      accountId,
      notice: isBrowser ? 'browser_removed' : 'channel_removed',
      at: context.now,
    })
    await recordChange(context, {
      action: isBrowser ? 'push_subscription.deleted' : 'notification_channel.deleted',
      object: { kind: isBrowser ? 'push_subscription' : 'notification_channel', id },
    })
    return { deleted: true }
  },
})
