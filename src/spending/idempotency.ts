/**
 * Idempotency of writes that spend nothing; spends have theirs in `spend_reserve`, in the same table and under the same
 * locks. The answer is kept in the transaction of its effect where it has one, for 24 hours.
 */

import type { Json } from '../base/json.ts'
import { idempotencyInProgress, idempotencyKeyReused } from '../failures/idempotency-failures.ts'
import type { Connection, Database, Statement } from '../storage/database.ts'

/** A call that came with an idempotency key. */
export interface IdempotentCall {
  /** Who calls: keys of different principals are different. */
  readonly principal: string
  readonly key: string
  /** A hash of operation and input: the same key with another one is refused. */
  readonly fingerprint: string
}

/** An answer and whether it is that of an earlier call. */
export interface IdempotentAnswer {
  readonly replayed: boolean
  readonly answer: Json
}

const lockStatement: Statement = {
  name: 'idempotency_lock',
  // Two hashes of 32 bits: two pairs that collide only wait for each other's retry, never share an answer.
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
  // A claim that was neither kept nor freed is that of a process that ended: longer than any request lasts.
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
  // What is locked is in use: it is left for the next sweep, so that a sweep waits for nobody.
  text: `delete from idempotency where (principal, key) in (
    select i.principal, i.key from idempotency i
    where i.created_at < $1::timestamptz - interval '24 hours'
      and not spend_is_open(i.decision_id, $1::timestamptz)
    for update skip locked)`,
}

/** A key as it was found. @property claimed a call has it that has neither answered nor decided. */
interface Found {
  readonly fingerprint: string
  readonly answered: boolean
  readonly answer: Json
  readonly created_at: Date
  readonly claimed: boolean
}

/** A claim is free again after this, by {@link claimStatement}. */
const CLAIM_MS = 2 * 60_000
/** Calls usually answer sooner. */
const USUAL_MS = 5_000

/** Whole seconds until it makes sense to ask again: an older claim is probably that of a process that ended. */
function waitFor(found: Found | undefined, at: Date): number {
  if (found === undefined || !found.claimed) return 1
  const ageMs = at.getTime() - found.created_at.getTime()
  return ageMs < USUAL_MS ? 1 : Math.max(1, Math.floor((CLAIM_MS - ageMs) / 1000) + 1)
}

/**
 * Runs work once for an idempotency key, in one transaction with the row that keeps its answer. A throw keeps nothing.
 * @throws Failure `idempotency_in_progress` while another call with the key runs.
 * @throws Failure `idempotency_key_reused` where the key belongs to another request.
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
    // Nobody else can have taken the key under the lock; were it so, two effects must not share it.
    if (kept.length === 0) throw idempotencyKeyReused()
    return { replayed: false, answer }
  })
}

/**
 * Runs work that asks others on the way once for an idempotency key: the key is claimed before it, and the answer kept after
 * it. A throw frees the key. Where the process ends in between, the key is free again after two minutes.
 * @throws Failure `idempotency_in_progress`, `idempotency_key_reused`, as {@link withIdempotency}.
 */
export async function claimingIdempotency(
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

/** Forgets keys that are older than 24 hours and whose spend, if any, is resolved and waits for nobody. */
export async function sweepIdempotency(connection: Connection, at: Date): Promise<void> {
  await connection.call(sweepStatement, [at])
}
