import { z } from 'zod'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { channelView, listChannels } from '../../../src/records/notifications/channels.ts'
import { listBrowserChannels } from '../../../src/records/notifications/subscriptions.ts'

export default defineTool({
  name: 'notifications.channels.list',
  title: 'Channels',
  summary: 'List where the owner is told of requests for approval, newest first.',
  description: 'Secrets are never shown.',
  route: 'GET /api/notifications/channels',
  who: 'person',
  effect: 'read',
  input: z.strictObject({}),
  output: z.strictObject({ channels: z.array(channelView).describe('Channels, then browsers.') }),
  failures: [],
  example: {},
  run: async (context) => {
    const accountId = requirePerson(context).account.id
    const [channels, browsers] = await Promise.all([
      listChannels(context.database, accountId),
      listBrowserChannels(context.database, { accountId, now: context.now }),
    ])
    return { channels: [...channels, ...browsers] }
  },
})
