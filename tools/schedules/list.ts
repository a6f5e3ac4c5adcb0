import { z } from 'zod'
import { nextCursor, pageMembers, toPage } from '../../src/core/base/page.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { nameSchedules } from '../../src/kernel/schedule-status.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { listRuns, listSchedules } from '../../src/records/schedules/store.ts'
import { scheduleView, viewSchedule } from '../../src/records/schedules/view.ts'

/** Runs of each schedule in a list. */
const RUNS = 5

export default defineTool({
  name: 'schedules.list',
  title: 'Schedules',
  summary: 'List schedules with their latest runs, newest first; a key sees its own.',
  description: 'Use it to see what is paid again and again.',
  route: 'GET /api/schedules',
  who: 'account',
  scopes: [],
  effect: 'read',
  mcp: true,
  input: z.strictObject(pageMembers),
  output: z.strictObject({
    schedules: z.array(scheduleView).describe('Those of this page.'),
    nextCursor,
  }),
  failures: [],
  run: async (context, input) => {
    const caller = requireCaller(context)
    const { rows, nextCursor: next } = await listSchedules(context.database, {
      accountId: caller.account.id,
      keyId: caller.kind === 'key' ? caller.key.id : null,
      page: toPage(input),
    })
    const runs = await listRuns(
      context.database,
      rows.map(({ id }) => id),
      RUNS,
    )
    const now = context.onCalendar(context.now)
    const schedules = rows.map((row) => viewSchedule(row, runs.get(row.id) ?? [], now))
    return { schedules: await nameSchedules(context, caller.account.id, schedules), nextCursor: next }
  },
})
