/** Reads and writes what the database knows of archived months. */
import { timingSafeEqual } from 'node:crypto'
import type { DecisionContent } from '../../books/spending/decision-content.ts'
import { firstIdAt, readIdTime } from '../../core/base/ids.ts'
import { keyedHash } from '../../core/base/seal.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'
import { retryLocks } from '../../storage/partitions.ts'
import { FIRST_PREVIOUS } from './chain.ts'

/** Decisions whose facts are kept by one statement. */
const PAGE = 2_000
/** Times of ids and of decisions differ by at most minutes. */
const ID_TOLERANCE_MS = 10 * 60_000
/** Decisions that may be moved while everybody waits. */
const MAX_MOVED = 5_000

/** @property sequence of the last decision that has left; 0: none has. */
export interface ArchiveEnd {
  readonly month: string | null
  readonly sequence: bigint
  readonly hash: string
}

/**
 * A month that left: the chain from `first` to `last`; `last` is before `first` where all of its decisions were sealed after one of a later
 * month, and leave with that. @property previous hash before it. @property hash at its end.
 */
export interface Archive {
  readonly month: string
  readonly first: bigint
  readonly last: bigint
  readonly previous: string
  readonly hash: string
  readonly manifestHash: string
}

const noArchive: ArchiveEnd = { month: null, sequence: 0n, hash: FIRST_PREVIOUS }

const all: Statement = {
  name: 'archive_all',
  text: `select to_char(month, 'YYYY-MM') as month, first_sequence as first, last_sequence as last, previous, hash,
      manifest_hash as "manifestHash", mac
    from archive order by month`,
}

function archiveMac(
  dataKey: Uint8Array,
  { month, first, last, previous, hash, manifestHash }: Archive,
): string {
  return keyedHash(dataKey, 'archive', [month, first, last, previous, hash, manifestHash].join(' '))
}

/**
 * Reads the archived months, oldest first. @throws Error when one was not archived by this gateway, or does not continue the one before:
 * deleted decisions must not pass for archived ones. @param dataKey null skips the authentication codes.
 */
export async function readArchives(
  database: Connection,
  dataKey: Uint8Array | null,
): Promise<readonly Archive[]> {
  const rows = await database.call<Archive & { mac: string }>(all, [])
  let end: Pick<Archive, 'last' | 'hash'> = { last: 0n, hash: FIRST_PREVIOUS }
  return rows.map(({ mac, ...archive }) => {
    const isOurs =
      dataKey === null || timingSafeEqual(Buffer.from(mac), Buffer.from(archiveMac(dataKey, archive)))
    if (!isOurs) throw new Error(`The archive of ${archive.month} was not made by this gateway.`)
    if (archive.first !== end.last + 1n || archive.previous !== end.hash)
      throw new Error(`The archive of ${archive.month} does not continue the one before it.`)
    end = archive
    return archive
  })
}

/** Where the decisions that are left begin. */
export function findArchiveEnd(archives: readonly Archive[]): ArchiveEnd {
  const last = archives.at(-1)
  return last === undefined ? noArchive : { month: last.month, sequence: last.last, hash: last.hash }
}

const newest: Statement = {
  name: 'archive_end',
  text: `select to_char(month, 'YYYY-MM') as month, last_sequence as sequence, hash from archive order by month desc limit 1`,
}

/** As {@link findArchiveEnd}, without authentication. */
export async function readArchiveEnd(database: Connection): Promise<ArchiveEnd> {
  const [row] = await database.call<ArchiveEnd>(newest, [])
  return row ?? noArchive
}

/** The end of a month. */
export function startOfNext(month: string): Date {
  const start = new Date(`${month}-01T00:00:00.000Z`)
  return new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1))
}

const oldest: Statement = {
  name: 'archive_oldest',
  text: 'select d.id, d.at from decision d where d.id >= $1 order by d.id limit 1',
}

/** When the first decision after the archived months was made: by its id, which says which partition has it. */
export async function readOldest(database: Connection, { month }: ArchiveEnd): Promise<Date | null> {
  const after = month === null ? '' : firstIdAt('dec', startOfNext(month))
  const [row] = await database.call<{ id: string; at: Date }>(oldest, [after])
  return row === undefined ? null : (readIdTime(row.id) ?? row.at)
}

const strays: Statement = {
  name: 'archive_strays',
  text: `select count(*) as count from decision_default d
    where d.id >= coalesce((select first_id_at('dec', (max(a.month) + interval '1 month') at time zone 'UTC') from archive a), '')`,
}

/** Counts decisions whose month had no partition when they were made, without those that an archive left. */
export async function countStrays(database: Connection): Promise<bigint> {
  return (await callForRow<{ count: bigint }>(database, strays, [])).count
}

const blockers: Statement = {
  name: 'archive_blockers',
  text: 'select what, count from archive_blockers($1, $2)',
}

/** Counts what still needs decisions before a time. */
export function readBlockers(
  database: Connection,
  { to, now }: { to: Date; now: Date },
): Promise<{ what: string; count: bigint }[]> {
  return database.call(blockers, [firstIdAt('dec', to), now])
}

/** @property last sequence of the last that leaves. */
export interface Leaving {
  readonly last: bigint
  readonly hash: string
  readonly writer: string | null
  readonly staying: readonly string[]
  readonly leaving: readonly string[]
}

// Decisions are sealed as they come, so that those of a month's edge are among the first of the next month.
const border: Statement = {
  name: 'archive_border',
  text: `select least(
      (select s.sequence from decision_seal s where s.decision_id >= $1 order by s.sequence limit 1),
      (select min(s.sequence) from decision d join decision_seal s on s.decision_id = d.id
        where d.id >= $2 and d.id < $1 and d.at >= $3),
      (select h.sequence + 1 from decision_head h)) - 1 as last,
    (select d.written_by::text from decision d where d.id < $1 order by d.written_by desc limit 1) as writer,
    (select count(*) from decision d where d.id < $1) as count`,
}

const hashAt: Statement = {
  name: 'archive_hash_at',
  text: 'select hash from decision_seal where sequence = $1',
}

// Of months before, some may stay in the default partition once more.
const edge: Statement = {
  name: 'archive_edge',
  text: `select s.decision_id as id, case when s.tableoid <> 'decision_seal_default'::regclass then 'moves' else 'stays' end as what
    from decision_seal s join decision d on d.id = s.decision_id
    where s.sequence > $2 and s.decision_id < $1
    union all
    select s.decision_id, 'leaves' from decision_seal_default s where s.sequence <= $2 and s.decision_id < $1
    limit $3`,
}

/**
 * Finds which decisions leave with a month: all up to the first that was made after it, in the order of the chain. That may be none: they
 * stay then, and later months need not wait for ever. @throws Error when too many were sealed among those of later months.
 */
export async function findLeaving(
  database: Connection,
  { to, end }: { to: Date; end: ArchiveEnd },
): Promise<Leaving> {
  const endId = firstIdAt('dec', to)
  const { last, writer, count } = await callForRow<{ last: bigint; writer: string | null; count: bigint }>(
    database,
    border,
    [endId, firstIdAt('dec', new Date(to.getTime() - ID_TOLERANCE_MS)), to],
  )
  const { hash } = last === end.sequence ? end : await callForRow<{ hash: string }>(database, hashAt, [last])
  const rows = await database.call<{ id: string; what: string }>(edge, [endId, last, MAX_MOVED + 1])
  if (rows.length > MAX_MOVED)
    throw new Error(
      `More than ${MAX_MOVED} decisions were sealed among those of another month: moving them would keep others waiting.`,
    )
  const pick = (...kinds: readonly string[]) =>
    rows.filter(({ what }) => kinds.includes(what)).map(({ id }) => id)
  const staying = BigInt(pick('moves', 'stays').length)
  if (count !== last - end.sequence + staying)
    throw new Error(
      `There are ${count} decisions before ${to.toISOString()}, of which ${last - end.sequence + staying} are in the chain. "bursar audit verify" names the others.`,
    )
  return { last, hash, writer, staying: pick('moves'), leaving: pick('leaves') }
}

const keeping: Statement = { name: 'archive_keep', text: 'select archive_keep($1, $2, $3) as last' }

/** Keeps what histories show of the decisions before a time. Repeating it changes nothing. */
export async function keepFacts(
  database: Connection,
  to: Date,
  progress: () => void = () => {},
): Promise<void> {
  const end = firstIdAt('dec', to)
  let after: string | null = ''
  while (after !== null) {
    const row: { last: string | null } = await callForRow(database, keeping, [after, end, PAGE])
    after = row.last
    progress()
  }
}

const compared: Statement = {
  name: 'archive_compared',
  text: `select count(d.id) as kept, min(c.id) filter (where d.id is null and c.verdict = 'allow' or d.id is not null
      and (d.at, d.account_id, d.key_id, d.policy_version, d.policy_hash, d.operation, d.facts, d.verdict) is distinct from
        (c.at, c.account_id, c.key_id, c.policy_version, c.policy_hash, c.operation, facts_kept(c.facts), c.verdict)) as changed
    from jsonb_to_recordset($1::jsonb) as c (id text, at timestamptz, account_id text, key_id text,
      policy_version int, policy_hash text, operation text, facts jsonb, verdict text)
    left join archived_decision d on d.id = c.id`,
}

/**
 * Compares what histories show of decisions that have left with the decisions. @returns how many of them histories know, and the first of
 * which they show something else, or nothing; null: none.
 */
export function compareKept(
  database: Connection,
  decisions: readonly DecisionContent[],
): Promise<{ kept: bigint; changed: string | null }> {
  const rows = decisions.map((content) => ({
    ...{ id: content.decisionId, at: content.at, account_id: content.accountId, key_id: content.keyId },
    ...{ policy_version: content.policyVersion, policy_hash: content.policyHash },
    ...{ operation: content.operation, facts: content.facts, verdict: content.verdict },
  }))
  return callForRow(database, compared, [JSON.stringify(rows)])
}

const kept: Statement = {
  name: 'archive_kept',
  text: `select count(*) as count from archived_decision a where not exists (select from decision d where d.id = a.id)`,
}

/** Counts the decisions that histories know from their archives alone. */
export async function countKept(database: Connection): Promise<bigint> {
  return (await callForRow<{ count: bigint }>(database, kept, [])).count
}

const leaving: Statement = {
  name: 'archive_leave',
  text: 'select archive_leave($1::jsonb, $2, $3, $4) as did',
}

/** Takes a month out of the database. @returns false if it had left before. */
export async function leave(
  database: Connection,
  archive: Archive,
  { dataKey, at, ...rows }: Leaving & { dataKey: Uint8Array; at: Date },
): Promise<boolean> {
  const row = {
    month: `${archive.month}-01`,
    first_sequence: archive.first.toString(),
    last_sequence: archive.last.toString(),
    previous: archive.previous,
    hash: archive.hash,
    manifest_hash: archive.manifestHash,
    at: at.toISOString(),
    mac: archiveMac(dataKey, archive),
  }
  const { did } = await retryLocks(() =>
    callForRow<{ did: boolean }>(database, leaving, [
      JSON.stringify(row),
      rows.staying,
      rows.leaving,
      rows.writer,
    ]),
  )
  return did
}

const dropping: Statement = { name: 'archive_drop', text: 'select archive_drop($1::date)::text as dropped' }

/** Drops the tables of a month that has left. Repeating it changes nothing. */
export async function dropMonth(database: Connection, month: string): Promise<void> {
  await database.call(dropping, [`${month}-01`])
}

const making: Statement = {
  name: 'archive_partition',
  text: 'select partition_make($1, $2, $3)::text as made',
}

/** Makes the partitions of a month that the default ones caught. */
export async function makeMonth(database: Connection, from: Date): Promise<void> {
  for (const parent of ['decision', 'decision_seal'])
    await retryLocks(() => database.call(making, [parent, 'dec', from]))
}
