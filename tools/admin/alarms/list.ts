import { z } from 'zod'
import { alarmDomains, openAlarms } from '../../../src/books/alarms/alarms.ts'
import { defineTool } from '../../../src/kernel/tool.ts'

export default defineTool({
  name: 'admin.alarms.list',
  title: 'Open alarms',
  summary: 'List the reports and records that contradict the gateway’s own data.',
  description:
    'For example, a broker reports more shares than were ordered, a deposit belongs to another customer, or a decision fails authentication. Nothing is booked, and the object of the alarm stops, with its money held, until the alarm is resolved. Returns the 200 oldest.',
  route: 'GET /api/admin/alarms',
  who: 'admin',
  effect: 'read',
  proof: 'step-up',
  input: z.strictObject({}),
  output: z.strictObject({
    alarms: z
      .array(
        z.strictObject({
          domain: z.enum(alarmDomains).describe('Part of the gateway that raised it.'),
          objectId: z.string().describe('Object of the alarm, such as an order or a decision.'),
          reason: z.string().describe('Machine-readable reason, such as `quantity_beyond_order`.'),
          reported: z.unknown().describe('The contradicting report or record.'),
          times: z.int().describe('How often it was raised while open.'),
          firstSeenAt: z.string().describe('When it was first raised, ISO 8601 UTC.'),
          lastSeenAt: z.string().describe('When it was last raised, ISO 8601 UTC.'),
        }),
      )
      .describe('Open alarms; empty if there are none.'),
  }),
  failures: [],
  example: {},
  run: async ({ database }) => ({
    alarms: (await openAlarms(database)).map(({ firstSeenAt, lastSeenAt, ...alarm }) => ({
      ...alarm,
      firstSeenAt: firstSeenAt.toISOString(),
      lastSeenAt: lastSeenAt.toISOString(),
    })),
  }),
})
