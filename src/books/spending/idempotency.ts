/**
 * Idempotency of writes that spend nothing. `spend_reserve` handles that of spends, in the same table and under the
 * same locks. An answer is stored for 24 hours, in the transaction of its effect if there is one.
 */

import type { Json } from '../../core/base/json.ts'
import { deleteInPortions } from '../../core/base/portions.ts'
import { idempotencyInProgress, idempotencyKeyReused } from '../../core/failures/idempotency-failures.ts'
import type { Connection, Database, Statement } from '../../storage/database.ts'

export interface IdempotentCall {
  /** The caller. Keys of different principals are independent. */
  readonly principal: string
  readonly key: string
  /** Hash of operation and input: reusing the key with a different hash is rejected. */
  readonly fingerprint: string
}

/** An answer. @property replayed true for the answer of an earlier call. */
export interface IdempotentAnswer {
  readonly replayed: boolean
  readonly answer: Json
}

const lockStatement: Statement = {
  name: 'idempotency_lock',
  // Two 32-bit hashes: colliding pairs only make each other retry; they never share an answer.
  text: 'select pg_try_advisory_xact_lock(hashtext($1), hashtext($2)) as locked',
}

const findStatement: Statement = {
  name: 'idempotency_find',
  text: `select fingerprint, answer is not null as answered, answer, created_at,
      answer is null and decision_id is null and payment_id is null as claimed
    from idempotency
    where principal = $1 and key = $2
      and (created_at >= $3::timestamptz - interval '24 hours'
        or spend_is_open(idempotency.decision_id, $3::timestamptz))`,
}

const keepStatement: Statement = {
  name: 'idempotency_keep',
  text: `insert into idempotency as i (principal, key, fingerprint, answer, created_at) values ($1, $2, $3, $4, $5)
    on conflict (principal, key) do update
    set fingerprint = excluded.fingerprint, decision_id = null, payment_id = null, answer = excluded.answer,
      created_at = excluded.created_at
    where i.created_at < excluded.created_at - interval '24 hours'
      and not spend_is_open(i.decision_id, excluded.created_at)
    returning 1`,
}

const claimStatement: Statement = {
  name: 'idempotency_claim',
  // A claim that was neither kept nor freed for two minutes, longer than any request, belongs to a process that
  // ended.
  text: `insert into idempotency as i (principal, key, fingerprint, created_at) values ($1, $2, $3, $4)
    on conflict (principal, key) do update
    set fingerprint = excluded.fingerprint, decision_id = null, payment_id = null, answer = null,
      created_at = excluded.created_at
    where (i.created_at < excluded.created_at - interval '24 hours'
        and not spend_is_open(i.decision_id, excluded.created_at))
      or (i.answer is null and i.decision_id is null and i.payment_id is null and i.fingerprint = excluded.fingerprint
        and i.created_at < excluded.created_at - interval '2 minutes')
    returning 1`,
}

const answerStatement: Statement = {
  name: 'idempotency_answer',
  text: `update idempotency set answer = $4
    where principal = $1 and key = $2 and created_at = $3 and answer is null and decision_id is null`,
}

const freeStatement: Statement = {
  name: 'idempotency_free',
  text: `delete from idempotency
    where principal = $1 and key = $2 and created_at = $3 and answer is null and decision_id is null`,
}

const sweepStatement: Statement = {
  name: 'idempotency_sweep',
  // Skips locked rows, which are in use, so that a sweep never blocks.
  text: `with deleted as (
      delete from idempotency where (principal, key) in (
        select i.principal, i.key from idempotency i
        where i.created_at < $1::timestamptz - interval '24 hours'
          and date_trunc('hour', i.created_at at time zone 'UTC') <= ($1::timestamptz - interval '24 hours') at time zone 'UTC'
          and not spend_is_open(i.decision_id, $1::timestamptz)
        limit $2 for update skip locked)
      returning 1)
    select count(*) as count from deleted`,
}

/** A stored key. @property claimed a call claimed it and has neither answered nor decided. */
interface Found {
  readonly fingerprint: string
  readonly answered: boolean
  readonly answer: Json
  readonly created_at: Date
  readonly claimed: boolean
}

/** Lifetime of a claim, as in {@link claimStatement}. */
const CLAIM_MS = 2 * 60_000
/** Usual duration of a call. */
const USUAL_MS = 5_000

/** Whole seconds until a retry is useful. An older claim probably belongs to a process that ended. */
function waitFor(found: Found | undefined, at: Date): number {
  if (found === undefined || !found.claimed) return 1
  const ageMs = at.getTime() - found.created_at.getTime()
  return ageMs < USUAL_MS ? 1 : Math.max(1, Math.floor((CLAIM_MS - ageMs) / 1000) + 1)
}

/**
 * Runs work once per idempotency key, in one transaction with the row that stores its answer. A throw stores nothing.
 * @throws Failure `idempotency_in_progress` while another call with the key runs.
 * @throws Failure `idempotency_key_reused` when the key belongs to another request.
 */
export function withIdempotency(
  database: Database,
  { principal, key, fingerprint, at }: IdempotentCall & { readonly at: Date },
  work: (connection: Connection) => Promise<Json>,
): Promise<IdempotentAnswer> {
  return database.transaction(async (connection) => {
    const [lock] = await connection.call<{ locked: boolean }>(lockStatement, [principal, key])
    if (lock?.locked !== true) throw idempotencyInProgress()
    const [found] = await connection.call<Found>(findStatement, [principal, key, at])
    if (found !== undefined) {
      if (found.fingerprint !== fingerprint) throw idempotencyKeyReused()
      if (!found.answered) throw idempotencyInProgress(waitFor(found, at))
      return { replayed: true, answer: found.answer }
    }
    const answer = await work(connection)
    const kept = await connection.call(keepStatement, [
      principal,
      key,
      fingerprint,
      JSON.stringify(answer),
      at,
    ])
    // The lock excludes other holders of the key; this check ensures that two effects never share it.
    if (kept.length === 0) throw idempotencyKeyReused()
    return { replayed: false, answer }
  })
}

/**
 * Runs work that calls other systems once per idempotency key: claims the key before the work and stores the answer
 * after it. A throw frees the key. If the process ends in between, the key is free again after two minutes.
 * @throws Failure `idempotency_in_progress`, `idempotency_key_reused`, as {@link withIdempotency}.
 */
export async function withClaimedIdempotency(
  database: Database,
  { principal, key, fingerprint, at }: IdempotentCall & { readonly at: Date },
  work: () => Promise<Json>,
): Promise<IdempotentAnswer> {
  const claimed = await database.call(claimStatement, [principal, key, fingerprint, at])
  if (claimed.length === 0) {
    const [found] = await database.call<Found>(findStatement, [principal, key, at])
    if (found !== undefined && found.fingerprint !== fingerprint) throw idempotencyKeyReused()
    if (found === undefined || !found.answered) throw idempotencyInProgress(waitFor(found, at))
    return { replayed: true, answer: found.answer }
  }
  try {
    const answer = await work()
    await database.call(answerStatement, [principal, key, at, JSON.stringify(answer)])
    return { replayed: false, answer }
  } catch (error) {
    await database.call(freeStatement, [principal, key, at])
    throw error
  }
}

/** Reads the answer that a call has kept under its idempotency key; undefined without one. */
export async function findStoredAnswer(
  { kysely }: Connection,
  { principal, key }: Pick<IdempotentCall, 'principal' | 'key'>,
): Promise<Json | undefined> {
  const row = await kysely
    .selectFrom('idempotency')
    .select('answer')
    .where('principal', '=', principal)
    .where('key', '=', key)
    .executeTakeFirst()
  return row?.answer ?? undefined
}

/** Deletes keys older than 24 hours whose spend, if any, is resolved. */
export async function sweepIdempotency(connection: Connection, at: Date): Promise<void> {
  await deleteInPortions(async (limit) => {
    const [deleted] = await connection.call<{ count: bigint }>(sweepStatement, [at, limit])
    return deleted?.count ?? 0n
  })
}
