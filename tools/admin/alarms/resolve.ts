import { z } from 'zod'
import { alarmDomains, resolveAlarm } from '../../../src/alarms/alarms.ts'
import { Failure } from '../../../src/failures/failure.ts'
import { personOf } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'

export default defineTool({
  name: 'admin.alarms.resolve',
  title: 'Resolve an alarm',
  summary: 'Let what an alarm has stopped go on.',
  description:
    'The next report about the object is judged like the first; one that still does not fit raises the alarm again. Nothing is booked by resolving. The note and who resolved it are kept.',
  route: 'POST /api/admin/alarms/resolve',
  who: 'admin',
  scopes: [],
  effect: 'write',
  stepUp: true,
  mcp: false,
  input: z.strictObject({
    domain: z.enum(alarmDomains).describe('Part of the gateway that raised it.'),
    objectId: z.string().max(200).describe('Object that it is about.'),
    reason: z.string().max(64).describe('Why it was raised.'),
    note: z
      .string()
      .trim()
      .min(1)
      .max(500)
      .regex(/^\P{Cc}*$/u, 'must not hold control characters')
      .describe('What was found out, for those who look at it later.'),
  }),
  output: z.strictObject({
    domain: z.enum(alarmDomains).describe('Part of the gateway that raised it.'),
    objectId: z.string().describe('Object that it is about.'),
    reason: z.string().describe('Why it was raised.'),
    resolvedAt: z.string().describe('ISO 8601 UTC.'),
  }),
  failures: ['not_found'],
  example: {
    domain: 'investing',
    objectId: 'ord_01h455vb4pex5vsknk084sn02q',
    reason: 'quantity_beyond_order',
    note: 'The broker has corrected its report.',
  },
  run: async (context, { note, ...name }) => {
    const at = context.now
    const by = personOf(context).account.id
    if (!(await resolveAlarm(context.database, { ...name, by, note, at })))
      throw new Failure('not_found', `There is no open alarm ${name.reason} of ${name.objectId}.`, {
        hint: 'GET /api/admin/alarms lists the open ones.',
      })
    await recordChange(context, {
      as: 'admin',
      action: 'alarm.resolved',
      object: { kind: `alarm ${name.domain}`, id: name.objectId },
    })
    return { ...name, resolvedAt: at.toISOString() }
  },
})
