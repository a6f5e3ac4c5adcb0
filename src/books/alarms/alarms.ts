/**
 * Alarms: provider reports and rows that contradict our records. The affected object stops, and its money stays held, wherever its
 * rail asks `isStopped`, until a person resolves the alarm. A recurring alarm is raised once and counted.
 */
import type { Json } from '../../core/base/json.ts'
import type { Log } from '../../core/base/log.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'

export const alarmDomains = ['audit', 'banking', 'cards', 'investing', 'compliance', 'purchases'] as const

export type AlarmDomain = (typeof alarmDomains)[number]

/** Identifies an alarm. @property reason machine-readable, such as `quantity_beyond_order`. */
export interface AlarmName {
  readonly domain: AlarmDomain
  readonly objectId: string
  readonly reason: string
}

/** @property times how often the alarm was raised. */
export interface OpenAlarm extends AlarmName {
  readonly reported: Json
  readonly times: number
  readonly firstSeenAt: Date
  readonly lastSeenAt: Date
}

const raise: Statement = {
  name: 'alarm_raise',
  text: `insert into alarm as a (domain, object_id, reason, reported, first_seen_at, last_seen_at)
    values ($1, $2, $3, $4, $5, $5)
    on conflict (domain, object_id, reason) do update
    set reported = excluded.reported, last_seen_at = excluded.last_seen_at,
      times = case when a.resolved_at is null then a.times + 1 else 1 end,
      first_seen_at = case when a.resolved_at is null then a.first_seen_at else excluded.first_seen_at end,
      resolved_at = null, resolved_by = null, note = null
    returning times`,
}

/** Raises an alarm, or counts an open one. Only the first occurrence is logged. */
export async function raiseAlarm(
  { database, log }: { readonly database: Connection; readonly log: Pick<Log, 'error'> },
  { domain, objectId, reason, reported, at }: AlarmName & { readonly reported: Json; readonly at: Date },
): Promise<void> {
  const { times } = await callForRow<{ times: number }>(database, raise, [
    domain,
    objectId,
    reason,
    JSON.stringify(reported),
    at,
  ])
  if (times === 1)
    log.error(
      { domain, objectId, reason, reported },
      'alarm raised: a person must look at an object, and resolve it',
    )
}

const openAlarm: Statement = {
  name: 'alarm_stops',
  // The limit keeps the planner from reading the whole table: a batch is always shorter than it expects.
  text: `
    select a.object_id is not null as stops
    from rows from (jsonb_to_recordset($1::jsonb) as (domain text, object_id text)) with ordinality as q
    left join lateral (
      select a.object_id from alarm a
      where a.domain = q.domain and a.object_id = q.object_id and a.resolved_at is null limit 1
    ) a on true
    order by q.ordinality`,
}

/** True if the object has an open alarm. */
export async function isStopped(
  database: Connection,
  { domain, objectId }: Pick<AlarmName, 'domain' | 'objectId'>,
): Promise<boolean> {
  const { stops } = await database.gather<{ stops: boolean }>(openAlarm, { domain, object_id: objectId })
  return stops
}

/** Lists up to 200 open alarms, oldest first. */
export async function openAlarms(database: Connection): Promise<readonly OpenAlarm[]> {
  const rows = await database.kysely
    .selectFrom('alarm')
    .select(['domain', 'object_id', 'reason', 'reported', 'times', 'first_seen_at', 'last_seen_at'])
    .where('resolved_at', 'is', null)
    .orderBy('first_seen_at')
    .limit(200)
    .execute()
  return rows.map(({ domain, object_id, reason, reported, times, first_seen_at, last_seen_at }) => ({
    domain,
    objectId: object_id,
    reason,
    reported,
    times,
    firstSeenAt: first_seen_at,
    lastSeenAt: last_seen_at,
  }))
}

/**
 * Resolves an open alarm, so its object resumes; a repeated report stops it again. @returns false if the alarm is not
 * open.
 */
export async function resolveAlarm(
  database: Connection,
  { domain, objectId, reason, by, note, at }: AlarmName & { by: string; note: string; at: Date },
): Promise<boolean> {
  const { numUpdatedRows } = await database.kysely
    .updateTable('alarm')
    .set({ resolved_at: at, resolved_by: by, note })
    .where('domain', '=', domain)
    .where('object_id', '=', objectId)
    .where('reason', '=', reason)
    .where('resolved_at', 'is', null)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}
