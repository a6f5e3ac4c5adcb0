import { z } from 'zod'
import { readOutbox } from '../../src/identity/codes/outbox.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { channels } from '../../src/providers/messages.ts'

const MOST = 100

export default defineTool({
  name: 'sandbox.outbox',
  title: 'Outbox',
  summary: 'Read the messages that the sandbox sent to nobody, newest first.',
  description: `At most ${MOST} messages of the last day. A channel with a provider of its own does not come through here.`,
  route: 'GET /sandbox/outbox',
  who: 'public',
  scopes: [],
  effect: 'read',
  mcp: false,
  only: 'sandbox',
  input: z.strictObject({}),
  output: z.strictObject({
    messages: z
      .array(
        z.strictObject({
          channel: z.enum(channels).describe('How it would have travelled.'),
          destination: z.string().describe('E-mail address, or phone number in E.164.'),
          code: z.string().describe('The code in it; empty in a security notice.'),
          text: z.string().describe('The whole text.'),
          sentAt: z.string().describe('When it was sent, ISO 8601 UTC.'),
        }),
      )
      .describe('Messages, newest first.'),
  }),
  failures: [],
  example: {},
  run: async ({ database }) => {
    const messages = await readOutbox(database, { most: MOST })
    return { messages: messages.map(({ at, ...message }) => ({ ...message, sentAt: at.toISOString() })) }
  },
})
