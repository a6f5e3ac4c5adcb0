/** A schedule as its owner and its key see it. */
import { z } from 'zod'
import { parseJson } from '../../core/base/json.ts'
import { untrustedTextOrNull } from '../../core/base/untrusted-text.ts'
import { findDueTime } from './due-times.ts'
import {
  dueTimeOf,
  type Schedule,
  type ShownRun,
  scheduledOperations,
  scheduleStatuses,
  toRecurrence,
} from './store.ts'

const UPCOMING_DAYS = 30
const DAY_MS = 86_400_000

const runView = z.strictObject({
  at: z.string().describe('Due time, ISO 8601 UTC.'),
  status: z.enum(['completed', 'failed', 'denied', 'missed']).describe('What became of it.'),
  object: z
    .strictObject({ kind: z.string().describe('Its kind.'), id: z.string().describe('Its id.') })
    .nullable()
    .describe('What it made; null: nothing.'),
  decisionId: z.string().nullable().describe('`dec_…`; null: none.'),
  reason: z.string().nullable().describe('Code of the failure.'),
})

const guardView = z.strictObject({
  max: z.string().describe('Most that one purchase may cost.'),
  risePct: z.number().nullable().describe('Most that it may cost more than the one before, in percent.'),
})

export const scheduleView = z.strictObject({
  scheduleId: z.string().describe('`sch_…`'),
  operation: z.enum(scheduledOperations).describe('Operation of each run.'),
  input: z.looseObject({}).describe('Its input.'),
  contact: untrustedTextOrNull('Name of the contact that it pays.'),
  every: z
    .strictObject({
      unit: z.enum(['day', 'week', 'month']).describe('Unit.'),
      interval: z.int().describe('Units between two runs.'),
      on: z.int().nullable().describe('ISO weekday or day of the month.'),
    })
    .describe('How often.'),
  tz: z.string().describe('IANA time zone.'),
  status: z.enum(scheduleStatuses).describe('`failing`: three runs failed, the owner is asked.'),
  nextAt: z.string().nullable().describe('Next due time, ISO 8601 UTC; null: none.'),
  upcoming: z.array(z.string()).describe('Due times of the next 30 days.'),
  startsAt: z.string().describe('ISO 8601 UTC.'),
  endsAt: z.string().nullable().describe('ISO 8601 UTC; null: open.'),
  left: z.int().nullable().describe('Due times that are left of `count`; null: open.'),
  graceHours: z.int().describe('Hours after which a time is missed.'),
  priceGuard: guardView.nullable().describe('Of purchases.'),
  agentId: z.string().nullable().describe('Key that it spends as; null: the owner.'),
  runs: z.array(runView).describe('Runs, newest first.'),
  createdAt: z.string().describe('ISO 8601 UTC.'),
})
scheduleView.register(z.globalRegistry, { id: 'Schedule' })

const storedInput = z.record(z.string(), z.unknown())
const storedGuard = z.looseObject({ max: z.string(), risePct: z.number().optional() })

/** @param now of the calendar. */
export function viewSchedule(
  schedule: Schedule,
  runs: readonly ShownRun[],
  now: Date,
): z.input<typeof scheduleView> {
  const { max, risePct } = schedule.price_guard === null ? {} : storedGuard.parse(schedule.price_guard)
  const isOpen = schedule.status !== 'ended'
  return {
    scheduleId: schedule.id,
    operation: schedule.operation,
    input: storedInput.parse(parseJson(schedule.input)),
    contact: null,
    every: { unit: schedule.unit, interval: schedule.step, on: schedule.on_day },
    tz: schedule.tz,
    status: schedule.status,
    nextAt: schedule.status === 'active' ? (schedule.next_at?.toISOString() ?? null) : null,
    upcoming: schedule.status === 'active' ? listUpcoming(schedule, now) : [],
    startsAt: findDueTime(toRecurrence(schedule), 0).toISOString(),
    endsAt: schedule.ends_at?.toISOString() ?? null,
    left:
      schedule.last_index === null
        ? null
        : isOpen && schedule.next_at !== null
          ? schedule.last_index - schedule.next_index + 1
          : 0,
    graceHours: schedule.grace_hours,
    priceGuard: max === undefined ? null : { max, risePct: risePct ?? null },
    agentId: schedule.key_id,
    runs: runs.map(viewRun),
    createdAt: schedule.created_at.toISOString(),
  }
}

function viewRun(run: ShownRun): z.input<typeof runView> {
  if (run.status === 'running') throw new Error('a run that is not over is not shown')
  return {
    at: run.at.toISOString(),
    status: run.status,
    object:
      run.object_kind === null || run.object_id === null
        ? null
        : { kind: run.object_kind, id: run.object_id },
    decisionId: run.decision_id,
    reason: run.reason,
  }
}

function listUpcoming(schedule: Schedule, now: Date): string[] {
  const until = new Date(now.getTime() + UPCOMING_DAYS * DAY_MS)
  const times: string[] = []
  let next = schedule.next_at
  for (let index = schedule.next_index; next !== null && next <= until && times.length <= UPCOMING_DAYS; ) {
    times.push(next.toISOString())
    index += 1
    next = dueTimeOf(schedule, index)
  }
  return times
}
