import { z } from 'zod'
import { writeJson } from '../../src/core/base/json.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { decimalAmount } from '../../src/core/money/money.ts'
import { type Context, requireCaller } from '../../src/kernel/context.ts'
import { hashCall } from '../../src/kernel/fingerprint.ts'
import { awaitApproval } from '../../src/kernel/gates/approval.ts'
import { parsePolicy } from '../../src/kernel/gates/policy.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { nameSchedule } from '../../src/kernel/schedule-status.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import {
  findIndex,
  findStartDay,
  isTimeZone,
  type Recurrence,
} from '../../src/records/schedules/due-times.ts'
import {
  dueTimeOf,
  insertSchedule,
  type Schedule,
  scheduledOperations,
} from '../../src/records/schedules/store.ts'
import { scheduleView, viewSchedule } from '../../src/records/schedules/view.ts'

const NAME = 'schedules.create'

const moment = z.iso.datetime({ offset: true, error: 'must be an ISO 8601 time with its offset' }).max(40)

const request = z
  .strictObject({
    operation: z
      .preprocess(
        // A tool may be named as it is over MCP.
        (name) => (typeof name === 'string' ? name.replaceAll('_', '.') : name),
        z.enum(scheduledOperations),
      )
      .describe('Operation of each run.'),
    input: z.looseObject({}).describe('Its input, exactly as it would be sent, without a signature.'),
    every: z
      .strictObject({
        unit: z.enum(['day', 'week', 'month']).describe('Unit.'),
        interval: z.int().min(1).max(366).optional().describe('Units between two runs. Default: 1.'),
        on: z
          .int()
          .min(1)
          .max(31)
          .optional()
          .describe('ISO weekday (1: Monday), or day of the month: 31 is its last. Default: the start’s.'),
      })
      .describe('How often.'),
    tz: z.string().max(64).optional().describe('IANA time zone. Default: `UTC`.'),
    startsAt: moment
      .optional()
      .describe('The first run is due then, or on the first `on` after. Default: one interval from now.'),
    endsAt: moment.optional().describe('No run is due later.'),
    count: z.int().min(1).max(10_000).optional().describe('Due times in all.'),
    graceHours: z
      .int()
      .min(1)
      .max(720)
      .optional()
      .describe('A run that is later than this is missed. Default: 24.'),
    priceGuard: z
      .strictObject({
        max: decimalAmount.describe('Most that one purchase may cost.'),
        risePct: z
          .number()
          .min(0)
          .max(1_000)
          .optional()
          .describe('Most that it may cost more than the purchase before, in percent.'),
      })
      .optional()
      .describe('For purchases: a run that would cost more is denied.'),
  })
  .superRefine(({ operation, every, tz, priceGuard }, context) => {
    const refuse = (path: readonly string[], message: string) =>
      context.addIssue({ code: 'custom', path: [...path], message })
    if (every.unit === 'day' && every.on !== undefined) refuse(['every', 'on'], 'is for weeks and months')
    if (every.unit === 'week' && (every.on ?? 1) > 7)
      refuse(['every', 'on'], 'must be an ISO weekday, 1 to 7')
    if (tz !== undefined && !isTimeZone(tz)) refuse(['tz'], 'is no IANA time zone')
    if (priceGuard !== undefined && operation !== 'purchases.buy')
      refuse(['priceGuard'], 'is for purchases.buy only')
  })

type Request = z.output<typeof request>

const toMembers = (raw: unknown) => z.looseObject({}).parse(raw)

export default defineTool({
  name: NAME,
  title: 'Schedule payments',
  summary: 'Make one payment, purchase or order again and again, such as each month.',
  description:
    'Use it for rent, salaries, subscriptions and savings plans. The owner is asked once; each run is then decided under your policy as it is by then. `approval_required`: tell the owner the `approvalUrl`.',
  restDescription:
    'An owner confirms it with a second factor, and signs no run: a wallet that the owner’s own key guards pays by an agent’s schedule only. Each due time runs at most once; one that was missed runs late, once, within `graceHours`.',
  route: 'POST /api/schedules',
  who: 'account',
  scopes: [],
  effect: 'write',
  proof: 'step-up',
  ownTransactions: true,
  mcp: true,
  // Names of contacts are stored sealed in one place only.
  shownOnce: ['contact'],
  input: request,
  output: scheduleView,
  failures: [
    'insufficient_scope',
    'approval_required',
    'approval_rejected',
    'step_up_required',
    'mfa_enrollment_required',
    'chain_not_supported',
    'signature_rejected',
    'payout_rejected',
    'order_rejected',
    'not_found',
    'conflict',
  ],
  example: {
    operation: 'wallets.transfer',
    input: { destination: '0x000000000000000000000000000000000000dEaD', amount: '10', token: 'USDC' },
    every: { unit: 'month', on: 31 },
  },
  run: async (context, input) => {
    const caller = requireCaller(context)
    const now = context.onCalendar(context.now)
    const planned = plan(input, now)
    const { raw, payee } = await context.scheduling.admit(context, input)
    const named = payee === null ? {} : { payee: { ...payee, fingerprint: hashCall(NAME, input) } }
    await requireOwnersYes(
      { ...context, ...named },
      {
        ...input,
        input: toMembers(raw),
      },
    )
    const { first, ...times } = planned
    const schedule = await context.database.transaction(async (connection) => {
      const written = await insertSchedule(connection, {
        id: context.newId('sch', context.now),
        account_id: caller.account.id,
        key_id: caller.kind === 'key' ? caller.key.id : null,
        approval_id: context.approvedBy ?? null,
        operation: input.operation,
        input: writeJson(raw),
        payee: payee === null ? null : JSON.stringify(payee),
        ...times,
        grace_hours: input.graceHours ?? 24,
        price_guard: input.priceGuard === undefined ? null : JSON.stringify(input.priceGuard),
        next_at: first,
        created_at: context.now,
        updated_at: now,
      })
      if (written === undefined)
        throw new Failure('conflict', 'The account has a hundred schedules that have not ended.', {
          reason: 'too_many_open',
          hint: 'End one that is not needed any more: DELETE /api/schedules/{id}.',
        })
      await recordChange(
        context,
        {
          action: 'schedule.created',
          object: { kind: 'schedule', id: written.id },
          after: { operation: written.operation, keyId: written.key_id, status: written.status },
        },
        connection,
      )
      return written
    })
    return nameSchedule(context, caller.account.id, viewSchedule(schedule, [], now))
  },
})

/** Finds the first due time and the last. @throws Failure `invalid_request` for a schedule that is never due. */
function plan({ every, tz = 'UTC', startsAt, endsAt, count }: Request, now: Date) {
  const start = startsAt === undefined ? now : new Date(startsAt)
  const recurrence: Recurrence = {
    unit: every.unit,
    step: every.interval ?? 1,
    on: every.on ?? findStartDay({ unit: every.unit, tz, startsAt: start }),
    tz,
    startsAt: start,
  }
  const index = findIndex(recurrence, start < now ? now : start, { isAfter: startsAt === undefined })
  const row = {
    unit: recurrence.unit,
    step: recurrence.step,
    on_day: recurrence.on,
    tz,
    starts_at: start,
    ends_at: endsAt === undefined ? null : new Date(endsAt),
    next_index: index,
    last_index: count === undefined ? null : index + count - 1,
  } satisfies Partial<Schedule>
  const first = dueTimeOf(row, index)
  if (first !== null) return { ...row, first }
  const message = 'is before the first due time'
  throw new Failure('invalid_request', `endsAt: ${message}`, { issues: [{ path: 'endsAt', message }] })
}

/** A key's schedule is its owner's to allow, once. @throws Failure `approval_required`, `approval_rejected`. */
async function requireOwnersYes(context: Context, input: Request): Promise<void> {
  const caller = requireCaller(context)
  if (caller.kind !== 'key' || context.approvedBy !== undefined) return
  throw await awaitApproval(context, {
    operation: NAME,
    call: { input, raw: input, isWhole: true },
    key: caller.key,
    accountId: caller.account.id,
    decisionId: null,
    isReplayed: false,
    ttlSeconds: parsePolicy(caller.key)?.approval?.ttlSec,
    what: 'This schedule',
  })
}
