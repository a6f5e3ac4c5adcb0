import { z } from 'zod'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { listSubscriptions, subscriptionView } from '../../../src/records/notifications/subscriptions.ts'

export default defineTool({
  name: 'notifications.subscriptions.list',
  title: 'Subscribed browsers',
  summary: 'List the browsers that get push messages, newest first, and the key to subscribe another with.',
  description:
    'Web Push (RFC 8030) with the VAPID key of this deployment. A browser that refuses messages for good is removed by itself.',
  route: 'GET /api/notifications/subscriptions',
  who: 'person',
  effect: 'read',
  input: z.strictObject({}),
  output: z.strictObject({
    publicKey: z
      .string()
      .describe('`applicationServerKey` for PushManager.subscribe(): VAPID public key, base64url.'),
    subscriptions: z
      .array(subscriptionView)
      .describe('Browsers of the account whose sessions last, newest first; at most ten.'),
  }),
  failures: [],
  example: {},
  run: async (context) => ({
    publicKey: context.push.publicKey,
    subscriptions: await listSubscriptions(context.database, {
      accountId: requirePerson(context).account.id,
      now: context.now,
    }),
  }),
})
