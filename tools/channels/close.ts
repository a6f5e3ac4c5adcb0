import { z } from 'zod'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { beginClosing, readOwnChannel } from '../../src/rails/buying/channels/channel-store.ts'
import { channelView, viewChannel } from '../../src/rails/buying/channels/channel-view.ts'

export default defineTool({
  name: 'channels.close',
  title: 'Close a channel',
  summary: 'Close a payment channel: what the seller did not take returns to the wallet.',
  description: 'Use it when nothing more is bought there. Repeating it changes nothing.',
  route: 'POST /api/channels/{id}/close',
  who: 'account',
  scopes: ['purchases:pay'],
  effect: 'write',
  proof: 'none',
  stops: true,
  mcp: true,
  input: z.strictObject({ id: z.string().max(64).describe('`chn_…`.') }),
  output: channelView,
  failures: ['not_found'],
  example: { id: 'chn_0b1c2d3e4f5a6b7c8d9e0f1a2b' },
  run: async (context, { id }) => {
    const { database, now } = context
    const caller = requireCaller(context)
    await readOwnChannel(database, caller, id)
    await beginClosing(database, id, now)
    return viewChannel(await readOwnChannel(database, caller, id))
  },
})
