import { z } from 'zod'
import { requireCaller } from '../../src/kernel/context.ts'
import { nameSchedule } from '../../src/kernel/schedule-status.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { findSchedule, listRuns, noSuchSchedule } from '../../src/records/schedules/store.ts'
import { scheduleView, viewSchedule } from '../../src/records/schedules/view.ts'

/** Runs that are shown. */
const RUNS = 100

export default defineTool({
  name: 'schedules.get',
  title: 'Schedule',
  summary: 'Read a schedule and its latest runs.',
  description: 'Use it to see what became of a due time.',
  route: 'GET /api/schedules/{id}',
  who: 'account',
  scopes: [],
  effect: 'read',
  mcp: true,
  input: z.strictObject({ id: z.string().max(64).describe('`sch_…`') }),
  output: scheduleView,
  failures: ['not_found'],
  example: { id: 'sch_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const caller = requireCaller(context)
    const schedule = await findSchedule(context.database, {
      accountId: caller.account.id,
      keyId: caller.kind === 'key' ? caller.key.id : null,
      id,
    })
    if (schedule === undefined) throw noSuchSchedule()
    const runs = await listRuns(context.database, [id], RUNS)
    const view = viewSchedule(schedule, runs.get(id) ?? [], context.onCalendar(context.now))
    return nameSchedule(context, caller.account.id, view)
  },
})
