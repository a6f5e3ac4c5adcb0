import { z } from 'zod'
import { defineTool } from '../../src/kernel/tool.ts'
import { readOutbox } from '../../src/people/identity/codes/outbox.ts'
import { channels } from '../../src/providers/messages/port.ts'

const MAX_MESSAGES = 100

export default defineTool({
  name: 'sandbox.outbox',
  title: 'Outbox',
  summary: 'List the messages that the sandbox stored instead of sending, newest first.',
  description: `At most ${MAX_MESSAGES} messages of the last day. Channels with a configured provider are not included.`,
  route: 'GET /sandbox/outbox',
  who: 'public',
  effect: 'read',
  only: 'sandbox',
  input: z.strictObject({}),
  output: z.strictObject({
    messages: z
      .array(
        z.strictObject({
          channel: z.enum(channels).describe('Channel of the message.'),
          destination: z.string().describe('E-mail address, or phone number in E.164.'),
          code: z.string().describe('Code in the message; empty for a security notice.'),
          text: z.string().describe('Full text of the message.'),
          sentAt: z.string().describe('When it was sent, ISO 8601 UTC.'),
        }),
      )
      .describe('Messages, newest first.'),
  }),
  failures: [],
  example: {},
  run: async ({ database }) => {
    const messages = await readOutbox(database, { most: MAX_MESSAGES })
    return { messages: messages.map(({ at, ...message }) => ({ ...message, sentAt: at.toISOString() })) }
  },
})
