/** Reads and writes the rows of the decision chain. */

import {
  type ContentRow,
  contentColumns,
  type DecisionContent,
  toContent,
} from '../../books/spending/decision-content.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'
import { attachPayload, detachPayload } from './receipt.ts'

/** Rows per query. */
const PAGE = 500

/** A position in writing order. @property writer transaction number. */
export interface Position {
  readonly writer: string
  readonly id: string
}

export const beforeFirstDecision: Position = { writer: '0', id: '' }

/** @property sequence starts at 1. @property receipt compact JWS. */
export interface SealRow {
  readonly sequence: bigint
  readonly decisionId: string
  readonly previous: string
  readonly hash: string
  readonly receipt: string
}

/** @property content null if the decision has been deleted. */
export interface SealedDecision extends SealRow {
  readonly content: DecisionContent | null
}

/**
 * Rows restored from another server keep its transaction numbers, which may exceed all numbers of this one. A full
 * scan includes them; an incremental scan must not read them every time.
 */
const positionsAfter: Statement = {
  name: 'audit_positions',
  text: `select d.written_by::text as writer, d.id, pg_snapshot_xmin(pg_current_snapshot())::text as horizon
    from decision d
    where (d.written_by, d.id) > ($1::xid8, $2)
      and d.written_by < case when $4 then '18446744073709551615'::xid8 else pg_snapshot_xmax(pg_current_snapshot()) end
    order by d.written_by, d.id limit $3`,
}

/**
 * Reads the decisions after a position, in writing order. @param isWhole includes numbers of another server.
 * @returns rows with `horizon`: all transactions below it are committed or aborted.
 */
export function readPositions(
  database: Connection,
  { after, limit, isWhole }: { after: Position; limit: number; isWhole: boolean },
): Promise<(Position & { horizon: string })[]> {
  return database.call(positionsAfter, [after.writer, after.id, limit, isWhole])
}

// One look-up for each decision; without statistics the planner would read the whole chain.
const withoutSeal = `(
      select wanted.id from unnest($1::text[]) as wanted (id) where not decision_is_sealed(wanted.id)
    )`

const unsealedByIds: Statement = {
  name: 'audit_unsealed',
  text: `select ${contentColumns}, d.mac
    from ${withoutSeal} unsealed
    cross join lateral decision_read(unsealed.id) d
    order by d.id`,
}

const unsealedIds: Statement = {
  name: 'audit_unsealed_ids',
  text: `select unsealed.id from ${withoutSeal} unsealed`,
}

/** Reads which of these decisions have no seal yet. */
export async function readUnsealedIds(
  database: Connection,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await database.call<{ id: string }>(unsealedIds, [ids])
  return new Set(rows.map(({ id }) => id))
}

/** @property mac authentication code of the deciding process; null until it is written. */
export interface UnsealedDecision {
  readonly content: DecisionContent
  readonly mac: string | null
}

/** Reads the unsealed decisions among these ids. */
export async function readUnsealed(
  database: Connection,
  ids: readonly string[],
): Promise<UnsealedDecision[]> {
  const rows = await database.call<ContentRow & { mac: string | null }>(unsealedByIds, [ids])
  return rows.map((row) => ({ content: toContent(row), mac: row.mac }))
}

const chainHead: Statement = { name: 'audit_head', text: 'select sequence, hash from decision_head' }

export async function readHead(database: Connection): Promise<{ sequence: bigint; hash: string }> {
  return callForRow(database, chainHead, [])
}

const newestSealed: Statement = {
  name: 'audit_newest_sealed',
  text: `select pg_snapshot_xmin(pg_current_snapshot())::text as horizon, (
      select written_by::text from decision
      where id = (select decision_id from decision_seal order by sequence desc limit 1)
    ) as sealed`,
}

/** Reads the transaction of the newest sealed decision, null without one, and the oldest that is open now. */
export function readNewestSealed(database: Connection): Promise<{ sealed: string | null; horizon: string }> {
  return callForRow(database, newestSealed, [])
}

const sealer: Statement = {
  name: 'audit_lock',
  text: "select pg_try_advisory_xact_lock(hashtext('bursar audit'), hashtext('seal')) as locked",
}

/** Takes the advisory lock for sealing. @returns false if another transaction holds it. */
export async function lockChain(transaction: Connection): Promise<boolean> {
  const [row] = await transaction.call<{ locked: boolean }>(sealer, [])
  return row?.locked === true
}

const appendAll: Statement = {
  name: 'audit_append',
  text: `insert into decision_seal (sequence, decision_id, previous, hash, receipt, sealed_at, issuer)
    select sequence, decision_id, previous, hash, receipt, $6, $7
    from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[])
      as sealed (sequence, decision_id, previous, hash, receipt)`,
}

/** Stores receipts of one issuer. */
export async function appendSeals(
  transaction: Connection,
  seals: readonly SealRow[],
  { issuer, at }: { issuer: string; at: Date },
): Promise<void> {
  await transaction.call(appendAll, [
    seals.map(({ sequence }) => sequence.toString()),
    seals.map(({ decisionId }) => decisionId),
    seals.map(({ previous }) => previous),
    seals.map(({ hash }) => hash),
    seals.map(({ receipt }) => detachPayload(receipt)),
    at,
    issuer,
  ])
}

const sealedAfter: Statement = {
  name: 'audit_sealed',
  text: `select s.sequence, s.decision_id, s.previous, s.hash, s.receipt, s.issuer, ${contentColumns}
    from (select * from decision_seal where sequence > $1 order by sequence limit $2) s
    left join decision d on d.id = s.decision_id
    order by s.sequence`,
}

type SealedRow = Omit<SealRow, 'decisionId'> & { decision_id: string; issuer: string | null } & (
    | ContentRow
    | ({ id: null } & Omit<ContentRow, 'id'>)
  )

/** Reads sealed decisions in chain order. @param after a sequence. */
export async function readSealed(
  database: Connection,
  { after, limit }: { after: bigint; limit: number },
): Promise<SealedDecision[]> {
  const rows = await database.call<SealedRow>(sealedAfter, [after, limit])
  return rows.map((row) => {
    const content = row.id === null ? null : toContent(row)
    return {
      sequence: row.sequence,
      decisionId: row.decision_id,
      previous: row.previous,
      hash: row.hash,
      receipt: content === null ? row.receipt : wholeReceipt(row, content),
      content,
    }
  })
}

/** The receipt that a row of the chain stands for. */
export function wholeReceipt(
  { receipt, issuer }: { readonly receipt: string; readonly issuer: string | null },
  content: DecisionContent,
): string {
  return issuer === null ? receipt : attachPayload(receipt, { issuer, content })
}

/**
 * Reads sealed decisions in pages, in chain order. @param start sequence before the first, by default 0. @param until last sequence; all by default.
 */
export async function* sealedPages(
  database: Connection,
  { start = 0n, until }: { start?: bigint; until?: bigint } = {},
): AsyncGenerator<SealedDecision[]> {
  let after = start
  for (;;) {
    const page = await readSealed(database, { after, limit: PAGE })
    const last = page.at(-1)
    if (last === undefined) return
    yield until === undefined ? page : page.filter(({ sequence }) => sequence <= until)
    if (until !== undefined && last.sequence >= until) return
    after = last.sequence
  }
}

const unsealedAfter: Statement = {
  name: 'audit_unsealed_after',
  text: `select d.id from decision d
    where d.id > $1 and not exists (select 1 from decision_seal s where s.decision_id = d.id)
    order by d.id limit $2`,
}

export async function* unsealedPages(database: Connection): AsyncGenerator<readonly UnsealedDecision[]> {
  let after = ''
  for (;;) {
    const ids = (await database.call<{ id: string }>(unsealedAfter, [after, PAGE])).map(({ id }) => id)
    const last = ids.at(-1)
    if (last === undefined) return
    yield await readUnsealed(database, ids)
    after = last
  }
}
