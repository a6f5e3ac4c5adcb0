import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { defineTool } from '../../src/kernel/tool.ts'

/** One year, with its leap day. */
const MAX_SECONDS = 366 * 86_400

/** Later times cannot be named by ids and dates that are in use. */
const LAST = new Date('2100-01-01T00:00:00.000Z')

export default defineTool({
  name: 'sandbox.clock',
  title: 'Advance the calendar',
  summary: 'Set the calendar ahead on every gateway of the sandbox, as if it had been off for so long.',
  description:
    'It moves schedules, statements, budgets and approvals; never sign-in, signatures, codes, rate limits or the chain. It never goes back.',
  route: 'POST /sandbox/clock',
  who: 'public',
  effect: 'write',
  proof: 'none',
  only: 'sandbox',
  ownTransactions: true,
  input: z.strictObject({
    advance: z
      .int()
      .min(0, 'must not be negative: the calendar never goes back')
      .max(MAX_SECONDS, `must be at most ${MAX_SECONDS}: a year at a time`)
      .describe('Seconds, at most a year. 0 reads it.'),
  }),
  output: z.strictObject({ now: z.string().describe('The calendar’s time, ISO 8601 UTC.') }),
  failures: ['not_found', 'conflict'],
  example: { advance: 86_400 },
  run: async ({ advanceCalendar, onCalendar, now }, { advance }) => {
    if (advanceCalendar === null) throw new Failure('not_found', 'The calendar of production is the clock’s.')
    if (onCalendar(now).getTime() + advance * 1_000 > LAST.getTime())
      throw new Failure('conflict', 'The calendar ends with the year 2099.', {
        reason: 'too_far',
        hint: 'Start a new sandbox.',
      })
    if (advance > 0) await advanceCalendar(advance * 1_000, now)
    return { now: onCalendar(now).toISOString() }
  },
})
