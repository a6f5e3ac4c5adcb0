/** Reads what a bundle of books holds. Every reader pages by a key, so that a month of any size fits in memory. */
import { firstIdAt } from '../../core/base/ids.ts'
import type { Json } from '../../core/base/json.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'

/** Rows per query. */
const PAGE = 2_000
const DAY_MS = 86_400_000
/** Times of ids and of decisions differ by at most minutes. */
const ID_TOLERANCE_MS = 10 * 60_000

/** @property from inclusive. @property to exclusive. */
export interface Span {
  readonly from: Date
  readonly to: Date
}

/** A span, and the ids between which those of its decisions lie. */
export interface IdSpan extends Span {
  readonly firstId: string
  readonly lastId: string
}

export function withIds({ from, to }: Span): IdSpan {
  return {
    ...{ from, to },
    firstId: firstIdAt('dec', new Date(from.getTime() - ID_TOLERANCE_MS)),
    lastId: firstIdAt('dec', new Date(to.getTime() + ID_TOLERANCE_MS)),
  }
}

const calendar: Statement = {
  name: 'bundle_calendar',
  text: 'select coalesce(max(ahead_ms), 0)::bigint as ahead_ms from business_clock',
}

/** How far the calendar is ahead of the clock: a sandbox's may be set so. */
export async function readAheadMs(database: Connection): Promise<number> {
  return Number((await callForRow<{ ahead_ms: bigint }>(database, calendar, [])).ahead_ms)
}

const unsealed: Statement = {
  name: 'bundle_first_unsealed',
  text: `select min(d.at) as at from decision d where d.id >= $1 and d.id < $2 and d.at >= $3 and d.at < $4
    and not exists (select from decision_seal s where s.decision_id = d.id)`,
}

/** The earliest decision of a span that is not sealed yet; null: all are. */
export async function readFirstUnsealed(
  database: Connection,
  { firstId, lastId, from, to }: IdSpan,
): Promise<Date | null> {
  return (await callForRow<{ at: Date | null }>(database, unsealed, [firstId, lastId, from, to])).at
}

const later: Statement = {
  name: 'bundle_later',
  text: 'select exists (select from decision d where d.id >= $1 and d.at >= $2 and d.at < $3) as found',
}

/** Whether there are decisions after the end of a span on its last day: the day's counters know of them too. */
export async function hasLater(database: Connection, { to }: Span): Promise<boolean> {
  const first = firstIdAt('dec', new Date(to.getTime() - ID_TOLERANCE_MS))
  const midnight = new Date(Math.ceil(to.getTime() / DAY_MS) * DAY_MS)
  return (await callForRow<{ found: boolean }>(database, later, [first, to, midnight])).found
}

const sequences: Statement = {
  name: 'bundle_sequences',
  text: `select min(s.sequence) as first, max(s.sequence) as last from decision d join decision_seal s on s.decision_id = d.id
    where d.id >= $1 and d.id < $2 and d.at >= $3 and d.at < $4`,
}

/** Where the decisions of a span lie in the chain; null: it has none. */
export async function readSequences(
  database: Connection,
  { firstId, lastId, from, to }: IdSpan,
): Promise<{ readonly first: bigint; readonly last: bigint } | null> {
  const { first, last } = await callForRow<{ first: bigint | null; last: bigint | null }>(
    database,
    sequences,
    [firstId, lastId, from, to],
  )
  return first === null || last === null ? null : { first, last }
}

/**
 * What became of an allowed decision. @property keys that it is counted on, root first. @property counted millionths of a US dollar that
 * still count. @property transaction on `chain` that it rests on, once it is settled there.
 */
export interface SpendRow {
  readonly decision: string
  readonly account: string
  readonly keys: readonly string[]
  readonly day: string
  readonly counted: bigint
  readonly source: string | null
  readonly held: string | null
  readonly asset: string
  readonly units: bigint
  readonly taken: bigint
  readonly status: string
  readonly ended: Date | null
  readonly object: string | null
  readonly chain: string | null
  readonly transaction: string | null
  readonly payee: string | null
}

const spends: Statement = {
  name: 'bundle_spends',
  text: `select r.decision_id as decision, r.account_id as account, case when r.key_id is null then '{}' else key_path(r.key_id) end as keys,
      r.day::text as day, case r.status when 'released' then 0 else r.usd_micros end as counted, r.source, r.held, r.asset, r.units, r.taken, r.status, r.resolved_at as ended,
      e.object, e.chain, e.transaction, e.payee
    from reservation r join decision d on d.id = r.decision_id
    left join lateral (
      -- What carried a purchase's money to its purse is a transfer of the same decision.
      select 2 as rank, t.id as object, t.chain, t.transaction_hash as transaction, t.destination as payee
      from transfer t where t.decision_id = r.decision_id and t.funding_id is null and t.state = 'confirmed'
      union all
      select 1, p.id, p.chain, p.transaction_hash, p.pay_to from purchase p where p.decision_id = r.decision_id and p.state = 'settled'
      union all
      select 1, y.id, y.chain, y.transaction_hash, y.destination from relay y where y.decision_id = r.decision_id and y.state = 'confirmed'
      order by rank limit 1
    ) e on true
    where r.decision_id > $1 and r.decision_id < $2 and d.at >= $3 and d.at < $4 order by r.decision_id limit $5`,
}

/** What became of the allowed decisions of a span. */
export function spendPages(database: Connection, { firstId, lastId, from, to }: IdSpan) {
  return pages(firstId, (after) => database.call<SpendRow>(spends, [after, lastId, from, to, PAGE]), {
    keyOf: ({ decision }) => decision,
  })
}

/** A use of a key's budgets on a UTC day. @property unasked part of it that no decision counted: a card network took it. */
export interface UsageRow {
  readonly key: string
  readonly day: string
  readonly counted: bigint
  readonly count: number
  readonly unasked: { readonly counted: string; readonly count: number }
}

const usage: Statement = {
  name: 'bundle_usage',
  text: `select u.key_id as key, u.day::text as day, u.used_micros as counted, u.count,
      jsonb_build_object('counted', u.unasked_micros::text, 'count', u.unasked_count) as unasked
    from budget_usage u
    where (u.key_id, u.day) > ($1, $2::date) and u.day < $3::date order by u.key_id, u.day limit $4`,
}

/** The counters of all keys, of each day before the end of a span: longer budgets began before it. */
export async function* usagePages(database: Connection, { to }: Span): AsyncGenerator<readonly UsageRow[]> {
  // The day of the end is in the span unless it ends at midnight.
  const end = new Date(to.getTime() + DAY_MS - 1).toISOString().slice(0, 10)
  let after: Pick<UsageRow, 'key' | 'day'> = { key: '', day: '0001-01-01' }
  for (;;) {
    const page = await database.call<UsageRow>(usage, [after.key, after.day, end, PAGE])
    const last = page.at(-1)
    if (last === undefined) return
    yield page
    after = last
  }
}

/** A policy that some key had. */
export interface PolicyRow {
  readonly at: string
  readonly policy: Json
}

const policies: Statement = {
  name: 'bundle_policies',
  text: `select 'key ' || k.id as at, k.policy from access_key k where 'key ' || k.id > $1 and k.policy is not null
    union all
    select side.at, side.policy from journal_entry j
    cross join lateral (values ('was ' || j.id, j.before -> 'policy'), ('new ' || j.id, j.after -> 'policy')) as side (at, policy)
    where j.object_kind = 'key' and side.at > $1 and jsonb_typeof(side.policy) = 'object'
    order by at limit $2`,
}

/** The policies that keys have, and those that the journal knows they had. */
export function policyPages(database: Connection) {
  return pages('', (after) => database.call<PolicyRow>(policies, [after, PAGE]), { keyOf: ({ at }) => at })
}

export interface PostingRow {
  readonly transaction: string
  readonly ordinal: number
  readonly kind: string
  readonly reference: string
  readonly at: Date
  readonly source: string
  readonly destination: string
  readonly asset: string
  readonly units: bigint
}

const postings: Statement = {
  name: 'bundle_postings',
  // What a bridge brings for a payment that waits for it is held for that payment.
  text: `select t.id as transaction, p.ordinal, t.kind, coalesce(f.decision_id, t.reference) as reference, t.at, p.source, p.destination,
      p.asset, p.units
    from ledger_transaction t join posting p on p.transaction_id = t.id
    left join funding f on t.kind = 'bridge' and f.id = substr(t.id, 6) and t.id like 'fund:%'
    where (p.transaction_id, p.ordinal) > ($1, $2::int) and t.at < $3 order by p.transaction_id, p.ordinal limit $4`,
}

/** All postings before a moment, by transaction. */
export async function* postingPages(database: Connection, to: Date): AsyncGenerator<readonly PostingRow[]> {
  let after: Pick<PostingRow, 'transaction' | 'ordinal'> = { transaction: '', ordinal: 0 }
  for (;;) {
    const page = await database.call<PostingRow>(postings, [after.transaction, after.ordinal, to, PAGE])
    const last = page.at(-1)
    if (last === undefined) return
    yield page
    after = last
  }
}

async function* pages<Row>(
  first: string,
  read: (after: string) => Promise<readonly Row[]>,
  { keyOf }: { keyOf: (row: Row) => string },
): AsyncGenerator<readonly Row[]> {
  let after = first
  for (;;) {
    const page = await read(after)
    const last = page.at(-1)
    if (last === undefined) return
    yield page
    after = keyOf(last)
  }
}
