/** Pauses, resumes and ends schedules. */
import { Failure } from '../core/failures/failure.ts'
import { nameContact, nameContacts, readInputPayee } from '../records/contacts/names.ts'
import { findIndex } from '../records/schedules/due-times.ts'
import {
  changeStatus,
  dueTimeOf,
  findSchedule,
  listRuns,
  noSuchSchedule,
  type Schedule,
  toRecurrence,
} from '../records/schedules/store.ts'
import { viewSchedule } from '../records/schedules/view.ts'
import { type Context, requireCaller } from './context.ts'
import { recordChange } from './record-change.ts'

const RUNS = 100

/**
 * Sets the status of a schedule. One that has it already is answered as it is. @param mayChange throws unless the caller may.
 * @throws Failure `not_found`, `conflict` for one that has ended.
 */
export async function setScheduleStatus(
  context: Context,
  { id, status }: { id: string; status: 'active' | 'paused' | 'ended' },
  mayChange: (found: Schedule) => Promise<void> = async () => {},
) {
  const caller = requireCaller(context)
  const owner = { accountId: caller.account.id, keyId: caller.kind === 'key' ? caller.key.id : null, id }
  const now = context.onCalendar(context.now)
  const found = await findSchedule(context.database, owner)
  if (found === undefined) throw noSuchSchedule()
  if (found.status !== status && found.status !== 'ended') await mayChange(found)
  const schedule = await context.database.transaction(async (connection) => {
    const locked = await findSchedule(connection, { ...owner, isLocked: true })
    if (locked === undefined) throw noSuchSchedule()
    if (locked.status === status) return locked
    // Whether it may go on was judged by what it was before.
    if (status === 'active' && locked.status !== found.status && locked.status !== 'ended')
      throw new Failure('conflict', 'The schedule was changed during this request, which had no effect.', {
        hint: 'Send the request again.',
      })
    if (locked.status === 'ended')
      throw new Failure('conflict', 'The schedule has ended.', {
        reason: 'ended',
        hint: 'Make a new one: POST /api/schedules.',
      })
    const next = status === 'active' ? { next: findNext(locked, now) } : {}
    const changed = await changeStatus(connection, locked, {
      status: status === 'active' && next.next?.at === null ? 'ended' : status,
      ...next,
      at: now,
    })
    await recordChange(
      context,
      {
        action: changed.status === 'active' ? 'schedule.resumed' : `schedule.${changed.status}`,
        object: { kind: 'schedule', id },
        before: { status: locked.status },
        after: { status: changed.status },
        mayBePaused: true,
      },
      connection,
    )
    return changed
  })
  const runs = await listRuns(context.database, [id], RUNS)
  return nameSchedule(context, owner.accountId, viewSchedule(schedule, runs.get(id) ?? [], now))
}

type ScheduleView = ReturnType<typeof viewSchedule>

/** Adds the contact that a schedule pays. */
export async function nameSchedule(
  context: Pick<Context, 'database' | 'settings'>,
  accountId: string,
  view: ScheduleView,
): Promise<ScheduleView> {
  return { ...view, contact: await nameContact(context, accountId, readInputPayee(view.input)) }
}

/** Adds the contact that each schedule pays. */
export function nameSchedules(
  context: Pick<Context, 'database' | 'settings'>,
  accountId: string,
  views: readonly ScheduleView[],
): Promise<ScheduleView[]> {
  return nameContacts(context, accountId, views, ({ input }) => readInputPayee(input))
}

/** The first due time from now on: what passed meanwhile was not to be paid. */
function findNext(schedule: Schedule, now: Date): { index: number; at: Date | null } {
  const index = Math.max(schedule.next_index, findIndex(toRecurrence(schedule), now))
  return { index, at: dueTimeOf(schedule, index) }
}
