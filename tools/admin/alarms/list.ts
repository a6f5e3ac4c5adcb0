import { z } from 'zod'
import { alarmDomains, openAlarms } from '../../../src/alarms/alarms.ts'
import { defineTool } from '../../../src/kernel/tool.ts'

export default defineTool({
  name: 'admin.alarms.list',
  title: 'Open alarms',
  summary: 'Read the reports and records that do not fit what the gateway knows.',
  description:
    'A broker that reports more shares than were ordered, a deposit of another customer, a decision that no gateway has authenticated: nothing is booked, and what the alarm is about stops, with its money held, until the alarm is resolved. The 200 oldest.',
  route: 'GET /api/admin/alarms',
  who: 'admin',
  scopes: [],
  effect: 'read',
  stepUp: true,
  mcp: false,
  input: z.strictObject({}),
  output: z.strictObject({
    alarms: z
      .array(
        z.strictObject({
          domain: z.enum(alarmDomains).describe('Part of the gateway that raised it.'),
          objectId: z.string().describe('Object that it is about, such as an order or a decision.'),
          reason: z.string().describe('Why it was raised, for programs, such as `quantity_beyond_order`.'),
          reported: z.unknown().describe('The report or record that does not fit.'),
          times: z.int().describe('How often it was raised since it is open.'),
          firstSeenAt: z.string().describe('Since when it is open, ISO 8601 UTC.'),
          lastSeenAt: z.string().describe('When it was raised last, ISO 8601 UTC.'),
        }),
      )
      .describe('Empty while everything fits.'),
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
