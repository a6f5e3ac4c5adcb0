import { z } from 'zod'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { eventView, viewEvent } from '../../src/records/events/catalogue.ts'
import { publishEvents } from '../../src/records/events/publish.ts'
import { eventQuery, findSequence, readEvents } from '../../src/records/events/read-events.ts'

export default defineTool({
  name: 'events.list',
  title: 'Events',
  summary: 'List what happened to the account, oldest first; a key sees its own events.',
  description: 'Use it to wait for an outcome: poll it with the id of the last event as `after`.',
  restDescription: '`Accept: text/event-stream` streams them (`id`, `event`, `Last-Event-ID`).',
  route: 'GET /api/events',
  who: 'account',
  scopes: ['events:read'],
  effect: 'read',
  mcp: true,
  stream: true,
  input: eventQuery,
  output: z.strictObject({
    events: z.array(eventView).describe('Events of this page, oldest first.'),
    nextCursor: z.string().nullable().describe('`after` of the next page; null on the last page.'),
  }),
  failures: [],
  example: { type: 'transfer.confirmed,transfer.failed', limit: 20 },
  run: async ({ database, principal, now }, { type: types = null, after, limit = 50 }) => {
    const caller = requireCaller({ principal })
    const reader = { accountId: caller.account.id, keyId: caller.kind === 'key' ? caller.key.id : null }
    // A caller finds the events of its own earlier calls.
    await publishEvents(database, now)
    const from = after === undefined ? 0n : await findSequence(database, reader, after)
    const found = await readEvents(database, reader, { after: from, types, limit: limit + 1 })
    const events = found.slice(0, limit)
    return {
      events: events.map(viewEvent),
      nextCursor: found.length > limit ? (events.at(-1)?.id ?? null) : null,
    }
  },
})
