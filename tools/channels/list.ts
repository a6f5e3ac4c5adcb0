import { z } from 'zod'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { listChannels } from '../../src/rails/buying/channels/channel-store.ts'
import { channelView, viewChannel } from '../../src/rails/buying/channels/channel-view.ts'

const MAX_CHANNELS = 200

export default defineTool({
  name: 'channels.list',
  title: 'Channels',
  summary: 'List payment channels to sellers, open ones first; a key sees its own.',
  description: 'Use it to see what is deposited with sellers.',
  route: 'GET /api/channels',
  who: 'account',
  scopes: ['purchases:pay'],
  role: 'accountant',
  effect: 'read',
  mcp: true,
  input: z.strictObject({}),
  output: z.strictObject({ channels: z.array(channelView).describe('At most 200 channels.') }),
  failures: [],
  run: async (context) => {
    const channels = await listChannels(context.database, requireCaller(context), MAX_CHANNELS)
    return { channels: channels.map(viewChannel) }
  },
})
