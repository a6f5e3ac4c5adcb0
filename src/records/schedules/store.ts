/**
 * Schedules: calls that are made again and again. May import the books. Invariants: a due time is claimed once, by the row of its
 * run, before its call is made; a schedule makes one call at a time; an ended schedule never goes on.
 */
import type { Selectable } from 'kysely'
import { cutPage, type Page } from '../../core/base/page.ts'
import { Failure } from '../../core/failures/failure.ts'
import { type Connection, callForRow, type Database, type Statement } from '../../storage/database.ts'
import type { ScheduleRunTable, ScheduleTable } from '../../storage/schema.ts'
import { findDueTime, type Recurrence } from './due-times.ts'

export type Schedule = Selectable<ScheduleTable>
export type ScheduleRun = Selectable<ScheduleRunTable>

/** The columns that make due times. */
type Rule = Pick<Schedule, 'unit' | 'step' | 'on_day' | 'tz' | 'starts_at' | 'ends_at' | 'last_index'>

export const scheduledOperations = [
  'wallets.transfer',
  'banking.payouts.create',
  'purchases.buy',
  'investing.order',
] as const
export type ScheduledOperation = (typeof scheduledOperations)[number]

export const scheduleStatuses = ['active', 'paused', 'failing', 'ended'] as const

/** Schedules of an account that have not ended. */
const MAX_OPEN = 100
/** Failed runs in a row after which it stops. */
const MAX_FAILURES = 3
/** Reason of a run whose contact has become another payee: no later run can pay it either. */
export const PAYEE_CHANGED = 'payee_changed'
const HOUR_MS = 3_600_000
/** Due times that one claim passes over as missed. */
const MISSED_BATCH = 500

/** Whose schedules: an account's, or those of one of its keys. */
export interface ScheduleOwner {
  readonly accountId: string
  readonly keyId: string | null
}

export function noSuchSchedule(): Failure {
  return new Failure('not_found', 'You have no such schedule.')
}

export function toRecurrence({ unit, step, on_day: on, tz, starts_at: startsAt }: Rule): Recurrence {
  return { unit, step, on, tz, startsAt }
}

/** The due time of an index; null where the schedule has none any more. */
export function dueTimeOf(schedule: Rule, index: number): Date | null {
  if (schedule.last_index !== null && index > schedule.last_index) return null
  const due = findDueTime(toRecurrence(schedule), index)
  return schedule.ends_at !== null && due > schedule.ends_at ? null : due
}

const lock: Statement = {
  name: 'schedules_lock',
  text: 'select id from account where id = $1 for no key update',
}

/** Writes a schedule. @returns undefined when the account has as many as it may have. */
export async function insertSchedule(
  connection: Connection,
  row: Omit<Schedule, 'status' | 'failures' | 'price_guard' | 'payee'> & {
    readonly price_guard: string | null
    readonly payee: string | null
  },
): Promise<Schedule | undefined> {
  await callForRow(connection, lock, [row.account_id])
  const { open } = await connection.kysely
    .selectFrom('schedule')
    .select(({ fn }) => fn.countAll<string>().as('open'))
    .where('account_id', '=', row.account_id)
    .where('status', '<>', 'ended')
    .executeTakeFirstOrThrow()
  if (Number(open) >= MAX_OPEN) return undefined
  return connection.kysely.insertInto('schedule').values(row).returningAll().executeTakeFirstOrThrow()
}

/** Finds a schedule. @param isLocked until the transaction ends. */
export async function findSchedule(
  { kysely }: Connection,
  { accountId, keyId, id, isLocked = false }: ScheduleOwner & { id: string; isLocked?: boolean },
): Promise<Schedule | undefined> {
  let query = kysely
    .selectFrom('schedule')
    .selectAll()
    .where('id', '=', id)
    .where('account_id', '=', accountId)
  if (keyId !== null) query = query.where('key_id', '=', keyId)
  return (isLocked ? query.forUpdate() : query).executeTakeFirst()
}

export async function listSchedules(
  { kysely }: Connection,
  { accountId, keyId, page }: ScheduleOwner & { page: Page },
) {
  let query = kysely
    .selectFrom('schedule')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
  if (keyId !== null) query = query.where('key_id', '=', keyId)
  if (page.after !== null) query = query.where('id', '<', page.after)
  return cutPage(await query.execute(), page)
}

const latestRuns: Statement = {
  name: 'schedule_runs_latest',
  text: `select r.schedule_id, r.at, r.status, r.object_kind, r.object_id, r.decision_id, r.reason
    from unnest($1::text[]) s (id)
    cross join lateral (
      select * from schedule_run r where r.schedule_id = s.id and r.status <> 'running' order by r.at desc limit $2
    ) r`,
}

export type ShownRun = Pick<
  ScheduleRun,
  'schedule_id' | 'at' | 'status' | 'object_kind' | 'object_id' | 'decision_id' | 'reason'
>

/** The latest runs that are over of each schedule, newest first. */
export async function listRuns(
  database: Connection,
  ids: readonly string[],
  most: number,
): Promise<ReadonlyMap<string, readonly ShownRun[]>> {
  const rows = await database.call<ShownRun>(latestRuns, [ids, most])
  return new Map(ids.map((id) => [id, rows.filter(({ schedule_id }) => schedule_id === id)]))
}

/**
 * Changes what becomes of a schedule that has not ended. Times that pass while it does not run are not due: it goes on with the first
 * one after `at`.
 */
export async function changeStatus(
  { kysely }: Connection,
  schedule: Schedule,
  { status, next, at }: { status: Schedule['status']; next?: { index: number; at: Date | null }; at: Date },
): Promise<Schedule> {
  return kysely
    .updateTable('schedule')
    .set({
      status,
      updated_at: at,
      ...(status === 'ended' ? { next_at: null } : {}),
      ...(next === undefined ? {} : { next_index: next.index, next_at: next.at, failures: 0 }),
    })
    .where('id', '=', schedule.id)
    .where('status', '<>', 'ended')
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** How long a claimed run is left to the gateway that has it. A slower one is found out by its idempotency key. */
const BUSY_MS = 10_000

export interface ClaimedRun {
  readonly schedule: Schedule
  readonly run: ScheduleRun
}

/**
 * Claims due times: the row of a run is written, and the schedule's next time with it, before its call is made. Times that are late by
 * more than the schedule allows are missed.
 * @param now by which times are due. @param at the machine's time, by which a claim ends.
 */
export async function claimDue(
  database: Database,
  { now, at, limit }: { now: Date; at: Date; limit: number },
): Promise<readonly ClaimedRun[]> {
  return database.transaction(async (connection) => {
    const { kysely } = connection
    const due = await kysely
      .selectFrom('schedule')
      .selectAll()
      .where('status', '=', 'active')
      .where('next_at', '<=', now)
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('schedule_run')
              .select('schedule_id')
              .whereRef('schedule_run.schedule_id', '=', 'schedule.id')
              .where('schedule_run.status', '=', 'running'),
          ),
        ),
      )
      .orderBy('next_at')
      .limit(limit)
      .forUpdate()
      .skipLocked()
      .execute()
    const claimed: ClaimedRun[] = []
    for (const schedule of due) {
      const run = await claimNext(connection, schedule, { now, at })
      if (run !== undefined) claimed.push({ schedule, run })
    }
    return claimed
  })
}

async function claimNext(
  { kysely }: Connection,
  schedule: Schedule,
  { now, at }: { now: Date; at: Date },
): Promise<ScheduleRun | undefined> {
  const graceMs = schedule.grace_hours * HOUR_MS
  const missed: Date[] = []
  let index = schedule.next_index
  let next: Date | null = schedule.next_at
  while (next !== null && now.getTime() - next.getTime() > graceMs && missed.length < MISSED_BATCH) {
    missed.push(next)
    index += 1
    next = dueTimeOf(schedule, index)
  }
  const claimed = next !== null && next <= now && now.getTime() - next.getTime() <= graceMs ? next : null
  if (claimed !== null) {
    index += 1
    next = dueTimeOf(schedule, index)
  }
  const shared = { schedule_id: schedule.id, claimed_at: at }
  if (missed.length > 0)
    await kysely
      .insertInto('schedule_run')
      .values(
        missed.map((due) => ({
          ...shared,
          at: due,
          status: 'missed' as const,
          busy_until: at,
          ended_at: now,
        })),
      )
      .execute()
  const run =
    claimed === null
      ? undefined
      : await kysely
          .insertInto('schedule_run')
          .values({
            ...shared,
            at: claimed,
            status: 'running',
            busy_until: new Date(at.getTime() + BUSY_MS),
          })
          .returningAll()
          .executeTakeFirstOrThrow()
  const isOver = next === null && run === undefined
  await kysely
    .updateTable('schedule')
    .set({
      next_index: index,
      next_at: next,
      updated_at: now,
      ...(isOver ? { status: 'ended' as const } : {}),
    })
    .where('id', '=', schedule.id)
    .execute()
  return run
}

/** Claims runs that a crash or a slow provider left. @param at the machine's time. */
export async function reclaimRuns(
  database: Database,
  { at, limit }: { at: Date; limit: number },
): Promise<readonly ClaimedRun[]> {
  return database.transaction(async ({ kysely }) => {
    const open = await kysely
      .selectFrom('schedule_run')
      .selectAll()
      .where('status', '=', 'running')
      .where('busy_until', '<=', at)
      .orderBy('busy_until')
      .limit(limit)
      .forUpdate()
      .skipLocked()
      .execute()
    const claimed: ClaimedRun[] = []
    for (const run of open) {
      await kysely
        .updateTable('schedule_run')
        .set({ busy_until: new Date(at.getTime() + BUSY_MS) })
        .where('schedule_id', '=', run.schedule_id)
        .where('at', '=', run.at)
        .execute()
      const schedule = await kysely
        .selectFrom('schedule')
        .selectAll()
        .where('id', '=', run.schedule_id)
        .executeTakeFirstOrThrow()
      claimed.push({ schedule, run })
    }
    return claimed
  })
}

/** Leaves a run to a later try. @param reason code of the failure. @param approvalId what the owner was asked for it. */
export async function postponeRun(
  { kysely }: Connection,
  { schedule_id, at }: ScheduleRun,
  { until, reason, approvalId }: { until: Date; reason?: string; approvalId?: string | undefined },
): Promise<void> {
  await kysely
    .updateTable('schedule_run')
    .set({
      busy_until: until,
      ...(reason === undefined ? {} : { reason }),
      ...(approvalId === undefined ? {} : { approval_id: approvalId }),
    })
    .where('schedule_id', '=', schedule_id)
    .where('at', '=', at)
    .where('status', '=', 'running')
    .execute()
}

/** What became of a run. @property reason code of its failure. @property price what a purchase cost, a decimal string. */
export interface RunOutcome {
  readonly status: 'completed' | 'failed' | 'denied' | 'missed'
  readonly object?: { readonly kind: string; readonly id: string }
  readonly decisionId?: string
  readonly reason?: string
  readonly price?: string
}

/**
 * Ends a run once, and the schedule with its last one. @returns the schedule afterwards; undefined when another process has ended
 * the run.
 */
export async function endRun(
  { kysely }: Connection,
  { schedule_id, at: due }: ScheduleRun,
  { status, object, decisionId, reason, price }: RunOutcome,
  now: Date,
): Promise<Schedule | undefined> {
  const schedule = await kysely
    .selectFrom('schedule')
    .selectAll()
    .where('id', '=', schedule_id)
    .forUpdate()
    .executeTakeFirstOrThrow()
  const ended = await kysely
    .updateTable('schedule_run')
    .set({
      status,
      object_kind: object?.kind ?? null,
      object_id: object?.id ?? null,
      decision_id: decisionId ?? null,
      reason: reason ?? null,
      price: price ?? null,
      ended_at: now,
    })
    .where('schedule_id', '=', schedule_id)
    .where('at', '=', due)
    .where('status', '=', 'running')
    .returning('at')
    .executeTakeFirst()
  if (ended === undefined) return undefined
  const failures = status === 'completed' ? 0 : schedule.failures + (status === 'failed' ? 1 : 0)
  const isOver = schedule.next_at === null
  const isHopeless = status === 'failed' && reason === PAYEE_CHANGED
  const isFailing = !isOver && schedule.status === 'active' && (isHopeless || failures >= MAX_FAILURES)
  return kysely
    .updateTable('schedule')
    .set({
      failures,
      updated_at: now,
      ...(isOver ? { status: 'ended' as const } : isFailing ? { status: 'failing' as const } : {}),
    })
    .where('id', '=', schedule_id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** The price of the latest purchase before a due time; null: there is none. */
export async function findLastPrice(
  { kysely }: Connection,
  { schedule_id, at }: ScheduleRun,
): Promise<string | null> {
  const row = await kysely
    .selectFrom('schedule_run')
    .select('price')
    .where('schedule_id', '=', schedule_id)
    .where('at', '<', at)
    .where('price', 'is not', null)
    .orderBy('at', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.price ?? null
}

const nextDue: Statement = {
  name: 'schedules_next_due',
  text: `select (select min(next_at) from schedule where status = 'active') as due_at,
    least(
      (select min(busy_until) from schedule_run where status = 'running'),
      (select min(case when k.status = 'revoked' then to_timestamp(0) else k.expires_at end)
        from schedule s join access_key k on k.id = s.key_id where s.status <> 'ended')) as machine_due_at`,
}

/**
 * Milliseconds until a round has something to do, as far as is known now; none or fewer: at once. Infinite without a schedule.
 * @param now by which times are due. @param at the machine's time, by which runs that were left and ended keys are due.
 */
export async function findWaitMs(
  database: Connection,
  { now, at }: { now: Date; at: Date },
): Promise<number> {
  const { due_at: dueAt, machine_due_at: machineDueAt } = await callForRow<{
    due_at: Date | null
    machine_due_at: Date | null
  }>(database, nextDue, [])
  const waitMs = (until: Date | null, from: Date) =>
    until === null ? Number.POSITIVE_INFINITY : until.getTime() - from.getTime()
  return Math.min(waitMs(dueAt, now), waitMs(machineDueAt, at))
}

/** Schedules of keys that have ended. @param now by which a key expires. */
export async function findKeyless(
  { kysely }: Connection,
  { now, limit }: { now: Date; limit: number },
): Promise<readonly Schedule[]> {
  return kysely
    .selectFrom('schedule')
    .innerJoin('access_key', 'access_key.id', 'schedule.key_id')
    .selectAll('schedule')
    .where('schedule.status', '<>', 'ended')
    .where(({ or, eb }) =>
      or([eb('access_key.status', '=', 'revoked'), eb('access_key.expires_at', '<=', now)]),
    )
    .limit(limit)
    .execute()
}
