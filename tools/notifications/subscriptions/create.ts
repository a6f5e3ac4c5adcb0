import { z } from 'zod'
import { requirePerson } from '../../../src/kernel/context.ts'
import { requireRecentProof } from '../../../src/kernel/gates/step-up.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { sendSecurityNotice } from '../../../src/people/identity/security-notices.ts'
import {
  createSubscription,
  subscriptionMembers,
  subscriptionView,
} from '../../../src/records/notifications/subscriptions.ts'

export default defineTool({
  name: 'notifications.subscriptions.create',
  title: 'Subscribe a browser',
  summary: 'Send push messages to a browser when an agent asks for approval or the account needs attention.',
  description:
    'The body is PushSubscription.toJSON() without `expirationTime`, subscribed with the `publicKey` of GET /api/notifications/subscriptions. The payload of a message is {title, body, url}. A subscription lasts 30 days, also while nobody is signed in; sign-out, revocation of the session that made it, and a lock end its messages, so subscribe again after each sign-in. A browser that the account does not have needs a recent proof (`step_up_required`), and the owner is told by mail. An account has ten browsers at most: the oldest gives way. One that its push service has ended is removed.',
  route: 'POST /api/notifications/subscriptions',
  who: 'person',
  effect: 'write',
  proof: 'conditional',
  input: z.strictObject(subscriptionMembers),
  output: subscriptionView,
  failures: ['url_not_allowed', 'step_up_required'],
  example: {
    endpoint: 'https://push.example.com/send/abc',
    keys: {
      p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
      auth: 'BTBZMqHH6r4Tts7J_aSIgg',
    },
  },
  run: async (context, subscription) => {
    const { account, session } = requirePerson(context)
    const { view: made, isNew } = await createSubscription(context, {
      accountId: account.id,
      sessionId: session.id,
      subscription,
      requireProof: () => requireRecentProof(context),
      at: context.now,
    })
    if (isNew)
      await sendSecurityNotice(context, { accountId: account.id, notice: 'browser_added', at: context.now })
    await recordChange(context, {
      action: 'push_subscription.created',
      object: { kind: 'push_subscription', id: made.id },
      after: { host: made.host },
    })
    return made
  },
})
