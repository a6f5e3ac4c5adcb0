import { z } from 'zod'
import { setScheduleStatus } from '../../src/kernel/schedule-status.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { scheduleView } from '../../src/records/schedules/view.ts'

export default defineTool({
  name: 'schedules.remove',
  title: 'End a schedule',
  summary: 'End a schedule for good. Its runs stay readable.',
  description: 'Use it when it is not wanted any more.',
  restDescription: 'Ending it again answers the same.',
  route: 'DELETE /api/schedules/{id}',
  who: 'account',
  scopes: [],
  effect: 'write',
  proof: 'none',
  ownTransactions: true,
  stops: true,
  whilePaused: true,
  mcp: true,
  // Names of contacts are stored sealed in one place only.
  shownOnce: ['contact'],
  input: z.strictObject({ id: z.string().max(64).describe('`sch_…`') }),
  output: scheduleView,
  failures: ['not_found'],
  example: { id: 'sch_01h455vb4pex5vsknk084sn02q' },
  run: (context, { id }) => setScheduleStatus(context, { id, status: 'ended' }),
})
