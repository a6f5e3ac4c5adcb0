/**
 * Archives a month of decisions: writes its books as compressed files, verifies what it wrote, then takes the month out of the database.
 * Ended at any step and begun again, it goes on where it was: a month never leaves without its files, and never twice.
 */
import { mkdir, open, rename, rm, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { sql } from 'kysely'
import type { Connection, Database } from '../../storage/database.ts'
import { readAnchoredHeads } from './anchor-store.ts'
import { type ArchiveReport, verifyArchive } from './archive-files.ts'
import {
  type ArchiveEnd,
  dropMonth,
  findArchiveEnd,
  findLeaving,
  keepFacts,
  type Leaving,
  leave,
  makeMonth,
  readArchives,
  readBlockers,
  readOldest,
  startOfNext,
} from './archive-store.ts'
import { readAheadMs } from './bundle-store.ts'
import { readKeySet } from './receipt-keys.ts'
import type { SigningKey } from './signing-key.ts'
import { writeSnapshot } from './write-bundle.ts'

/** Months that stay, unless asked otherwise: a year and the month before it, which reports compare. */
export const DEFAULT_KEEP = 13

/** A call of a month's end may decide until then; it would not be in the files. */
const LATE_MS = 60 * 60_000

/** After each of these a process may end. `step` is called after it. */
export type ArchiveStep = 'written' | 'verified' | 'named' | 'kept' | 'left' | 'dropped'

export interface ArchiveRequest {
  readonly database: Database
  readonly issuer: string
  readonly key: SigningKey
  readonly dataKey: Uint8Array
  /** `2025-10`. */
  readonly month: string
  /** Directory to make. */
  readonly out: string
  /** Months that stay, with the present one. */
  readonly keep: number
  readonly now: Date
  /** Says what is being done. */
  readonly progress: (text: string) => void
  readonly step?: (step: ArchiveStep) => void
}

/** @property decisions that left; null: the month had left before. */
export interface ArchiveResult {
  readonly decisions: bigint | null
  readonly last: bigint
  readonly hash: string
}

/** @property calendar now. */
interface Plan {
  readonly from: Date
  readonly to: Date
  readonly calendar: Date
  readonly end: ArchiveEnd
  readonly leaving: Leaving
}

type PlanRequest = Pick<ArchiveRequest, 'month' | 'keep' | 'now' | 'dataKey'>

/** Finds the month that is due. @throws Error if it is another. */
async function findDue(
  database: Connection,
  { month, keep, now, dataKey }: PlanRequest,
): Promise<Omit<Plan, 'leaving'>> {
  const from = new Date(`${month}-01T00:00:00.000Z`)
  const to = startOfNext(month)
  const calendar = new Date(now.getTime() + (await readAheadMs(database)))
  const ended = new Date(calendar.getTime() - LATE_MS)
  const first = new Date(Date.UTC(ended.getUTCFullYear(), ended.getUTCMonth() + 1 - keep))
  if (to > first)
    throw new Error(
      `${month} stays: the last ${keep} months do. The newest that may leave is ${new Date(first.getTime() - 1).toISOString().slice(0, 7)}.`,
    )
  const end = findArchiveEnd(await readArchives(database, dataKey))
  const firstMonth = (await readOldest(database, end))?.toISOString().slice(0, 7)
  if (firstMonth === undefined || firstMonth > month)
    throw new Error(`There are no decisions of ${month} in this database.`)
  if (firstMonth < month) throw new Error(`Months leave in order: archive ${firstMonth} first.`)
  return { from, to, end, calendar }
}

/** @throws Error with what keeps the month. */
async function requireNoBlockers(
  database: Connection,
  { month, to, calendar }: Pick<Plan, 'to' | 'calendar'> & { month: string },
): Promise<void> {
  const blockers = await readBlockers(database, { to, now: calendar })
  if (blockers.length > 0)
    throw new Error(
      `${month} stays, because something still needs its decisions: ${blockers.map(({ what, count }) => `${count} ${what}`).join(', ')}.`,
    )
}

/** What would leave. @throws Error with what keeps the month. */
export async function planArchive(database: Connection, request: PlanRequest): Promise<Plan> {
  const { month } = request
  const { from, to, end, calendar } = await findDue(database, request)
  await requireNoBlockers(database, { month, to, calendar })
  return { from, to, calendar, end, leaving: await findLeaving(database, { to, end }) }
}

/** @throws Error with the reason; the database has the month then, or the directory its files. */
export function archiveMonth(request: ArchiveRequest): Promise<ArchiveResult> {
  const { database } = request
  // One process has PGlite, in one session.
  if (database.engine === 'pglite') return takeMonth(request)
  // To the end: another process would write its draft where this one's is being verified, and what is named would be neither.
  return database.transaction(async (holder) => {
    await lockArchive(holder)
    return takeMonth(request)
  })
}

async function takeMonth(request: ArchiveRequest): Promise<ArchiveResult> {
  const { database, dataKey, month, now, progress, step = () => {} } = request
  const known = (await readArchives(database, dataKey)).find((one) => one.month === month)
  if (known !== undefined) {
    await dropMonth(database, month)
    step('dropped')
    return { decisions: null, last: known.last, hash: known.hash }
  }
  // Before its partition is made: nothing else may get one.
  await makeMonth(database, (await findDue(database, request)).from)
  const out = resolve(request.out)
  const draft = `${out}.partial`
  const isWritten = await exists(out)
  const keySet = await readKeySet(database, dataKey)
  const { plan, anchors } = await database.transaction(async (snapshot) => {
    await sql`set transaction isolation level repeatable read`.execute(snapshot.kysely)
    const found = await planArchive(snapshot, request)
    const first = found.end.sequence + 1n
    if (!isWritten) {
      await rm(draft, { recursive: true, force: true })
      const made = await mkdir(draft, { recursive: true, mode: 0o700 })
      if (made !== undefined) await syncDirectory(dirname(made))
      await writeSnapshot(snapshot, draft, {
        ...request,
        period: { from: found.from, to: found.to },
        isCompressed: true,
        // One row at least: where none leaves, the first that stays.
        chain: { first, last: found.leaving.last < first ? first : found.leaving.last },
        progress: (file, lines) => progress(`${lines.toLocaleString('en-US')} in ${file}`),
      })
    }
    return { plan: found, anchors: await readAnchoredHeads(snapshot) }
  })
  step('written')
  const { end, leaving } = plan
  const report = await verifyArchive(isWritten ? out : draft, {
    keySet,
    start: end,
    through: leaving.last,
    anchors,
    progress: (count) => progress(`${count.toLocaleString('en-US')} verified`),
  })
  requireSame(report, { month, out, leaving })
  step('verified')
  if (!isWritten) {
    await syncDirectory(draft)
    await rename(draft, out)
  }
  // Also if an earlier process ended before this.
  await syncDirectory(dirname(out))
  step('named')
  progress('keeping what histories show')
  await keepFacts(database, plan.to)
  step('kept')
  const archive = {
    ...{ month, first: report.first, last: leaving.last, previous: end.hash, hash: leaving.hash },
    manifestHash: report.manifestHash,
  }
  // Verifying takes long enough for somebody to open a dispute.
  await requireNoBlockers(database, { month, ...plan })
  progress('waiting for a moment without others')
  const did = await leave(database, archive, { ...leaving, dataKey, at: now })
  step('left')
  await dropMonth(database, month)
  step('dropped')
  return { decisions: did ? leaving.last - end.sequence : null, last: leaving.last, hash: leaving.hash }
}

/** @throws Error when the files are of another month, or of another chain. */
function requireSame(
  report: ArchiveReport,
  { month, out, leaving }: { month: string; out: string; leaving: Leaving },
): void {
  if (report.from.slice(0, 7) !== month || report.through?.hash !== leaving.hash)
    throw new Error(`${out} exists, and is not the archive of ${month}. Nothing is overwritten.`)
}

/** @throws Error while another process archives. */
async function lockArchive(holder: Connection): Promise<void> {
  // Its session is silent until the month has left: a server that ends such ones would let another process in.
  await sql`set local idle_in_transaction_session_timeout = 0`.execute(holder.kysely)
  const [row] = await holder.call<{ locked: boolean }>(
    {
      name: 'archive_lock',
      text: "select pg_try_advisory_xact_lock(hashtext('bursar audit'), hashtext('archive')) as locked",
    },
    [],
  )
  if (row?.locked !== true) throw new Error('Another process is archiving. One at a time.')
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path)
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}
