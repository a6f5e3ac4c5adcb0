import { z } from 'zod'
import { alarmDomains, resolveAlarm } from '../../../src/books/alarms/alarms.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { adminNote } from '../../../src/kernel/admin-note.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'

export default defineTool({
  name: 'admin.alarms.resolve',
  title: 'Resolve an alarm',
  summary: 'Resolve an alarm and resume the object it stopped.',
  description:
    'The next report about the object is checked as usual and may raise the alarm again. Resolving books nothing. The note and the administrator are recorded.',
  route: 'POST /api/admin/alarms/resolve',
  who: 'admin',
  effect: 'write',
  proof: 'step-up',
  input: z.strictObject({
    domain: z.enum(alarmDomains).describe('Part of the gateway that raised it.'),
    objectId: z.string().max(200).describe('Object of the alarm.'),
    reason: z.string().max(64).describe('Machine-readable reason of the alarm.'),
    note: adminNote.describe('Findings, for the record.'),
  }),
  output: z.strictObject({
    domain: z.enum(alarmDomains).describe('Part of the gateway that raised it.'),
    objectId: z.string().describe('Object of the alarm.'),
    reason: z.string().describe('Machine-readable reason of the alarm.'),
    resolvedAt: z.string().describe('When it was resolved, ISO 8601 UTC.'),
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
    const by = requirePerson(context).account.id
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
