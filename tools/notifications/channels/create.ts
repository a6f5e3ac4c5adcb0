import { z } from 'zod'
import { Failure } from '../../../src/core/failures/failure.ts'
import { type Context, requirePerson } from '../../../src/kernel/context.ts'
import { requireRecentProof } from '../../../src/kernel/gates/step-up.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { findOwnAddress } from '../../../src/people/identity/codes/own-address.ts'
import { sendSecurityNotice } from '../../../src/people/identity/security-notices.ts'
import {
  channelMembers,
  channelName,
  channelView,
  createChannel,
  type NewTarget,
} from '../../../src/records/notifications/channels.ts'
import {
  createSubscription,
  subscriptionMembers,
  viewBrowserChannel,
} from '../../../src/records/notifications/subscriptions.ts'

const { webhookUrl, botToken, chatId, address } = channelMembers

/** Members that each kind needs. */
const needs = {
  slack: ['webhookUrl'],
  telegram: ['botToken', 'chatId'],
  email: ['address'],
  webpush: ['endpoint', 'keys'],
} as const

const members = {
  webhookUrl: webhookUrl.optional(),
  botToken: botToken.optional(),
  chatId: chatId.optional(),
  address: address.optional(),
  endpoint: subscriptionMembers.endpoint.optional(),
  keys: subscriptionMembers.keys.optional(),
}

const request = z
  .strictObject({
    type: z.enum(['slack', 'telegram', 'email', 'webpush']).describe('Kind of channel.'),
    name: channelName,
    ...members,
  })
  .superRefine((input, context) => {
    const needed: readonly string[] = needs[input.type]
    for (const name of Object.keys(members)) {
      const isGiven = Reflect.get(input, name) !== undefined
      if (isGiven === needed.includes(name)) continue
      const message = isGiven ? `is not of ${input.type}` : `is required for ${input.type}`
      context.addIssue({ code: 'custom', path: [name], message })
    }
  })

export default defineTool({
  name: 'notifications.channels.create',
  title: 'Add a channel',
  summary: 'Tell the owner of requests for approval by Slack, Telegram, e-mail or a browser.',
  description:
    'A message says who asks for what, how much, to whom, what is left of the budgets afterwards, and has a link: approving happens only on the page, signed in. It also tells of 80 % of a budget used, failing schedules, and what else needs attention.',
  restDescription:
    'Slack takes the URL of an incoming webhook; Telegram a bot and a chat; e-mail an address that the account signs in with, no other; `webpush` what POST /api/notifications/subscriptions takes. An account has ten at most. It needs a recent proof, and the owner is told by mail.',
  route: 'POST /api/notifications/channels',
  who: 'person',
  effect: 'write',
  proof: 'recent',
  input: request,
  output: channelView,
  failures: ['url_not_allowed', 'conflict'],
  example: { type: 'slack', webhookUrl: 'https://hooks.slack.com/services/T0000/B0000/XXXX' },
  run: async (context, input) => {
    const accountId = requirePerson(context).account.id
    const added = await addChannel(context, input)
    const isBrowser = input.type === 'webpush'
    await sendSecurityNotice(context, {
      accountId,
      notice: isBrowser ? 'browser_added' : 'channel_added',
      at: context.now,
    })
    await recordChange(context, {
      action: isBrowser ? 'push_subscription.created' : 'notification_channel.created',
      object: { kind: isBrowser ? 'push_subscription' : 'notification_channel', id: added.id },
      after: { type: added.type, label: added.label },
    })
    return added
  },
})

async function addChannel(context: Context, input: z.output<typeof request>) {
  const { account, session } = requirePerson(context)
  const { endpoint, keys, name = null } = input
  if (endpoint !== undefined && keys !== undefined) {
    const { view } = await createSubscription(context, {
      accountId: account.id,
      sessionId: session.id,
      subscription: { endpoint, keys },
      requireProof: () => requireRecentProof(context),
      at: context.now,
    })
    return viewBrowserChannel(view)
  }
  const target = await readTarget(context, input)
  return createChannel(context, { accountId: account.id, target, name, at: context.now })
}

async function readTarget(context: Context, input: z.output<typeof request>): Promise<NewTarget> {
  const { webhookUrl: url, botToken: token, chatId: chat, address: mailbox = '' } = input
  if (url !== undefined) return { type: 'slack', webhookUrl: url }
  if (token !== undefined) return { type: 'telegram', botToken: token, chatId: String(chat) }
  const accountId = requirePerson(context).account.id
  const own = await findOwnAddress(context, { accountId, address: mailbox })
  if (own !== undefined) return { type: 'email', destinationHash: own.hash, label: own.masked }
  const message = 'must be an e-mail address that you sign in with'
  throw new Failure('invalid_request', `address: ${message}`, {
    issues: [{ path: 'address', message }],
    hint: 'Sign in with it once (POST /api/auth/otp/start on this session), so that it is known to be yours.',
  })
}
