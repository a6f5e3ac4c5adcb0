/**
 * Approvals: agent calls that need the owner's consent. Each is bound to the exact call, decided once and run once. Those of
 * declined card purchases run nothing: the same purchase passes once when its card tries it again in time.
 */
import { z } from 'zod'
import type { NewId } from '../base/ids.ts'
import type { Json } from '../base/json.ts'
import type { Page } from '../base/page.ts'
import type { Violation } from '../failures/failure.ts'
import type { Connection, Database, Statement } from '../storage/database.ts'
import { violationView } from './violation-view.ts'

/** How long an approved card purchase may be tried again: 15 minutes. */
export const PURCHASE_RETRY_MS = 15 * 60_000

/** An approval. `expired` is a pending one past its expiry. */
export interface Approval {
  readonly id: string
  readonly accountId: string
  readonly keyId: string
  readonly decisionId: string
  readonly operation: string
  /** Input of the call as its original JSON text. */
  readonly input: string
  readonly idempotencyKey: string | null
  /** Agent's reason for an exception to its policy; null where the policy itself requires the approval. */
  readonly reason: string | null
  /** Rules that the call breaks, as the owner sees them: those that an approval overrules. */
  readonly violations: readonly Violation[]
  readonly status: 'pending' | 'approved' | 'rejected' | 'withdrawn' | 'expired'
  /** Owner's note to the agent. */
  readonly note: string | null
  /** Decision that allowed the approved call; null until then. */
  readonly usedBy: string | null
  /** Answer of the call, once it has run. */
  readonly answer: Json | null
  /** Problem of the call, if it failed. */
  readonly problem: Json | null
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly decidedAt: Date | null
  /** Card of a declined purchase that may be tried again once approved; null for a call. */
  readonly cardId: string | null
  /** When the agent, the card or the account was stopped before the purchase was tried again. */
  readonly endedAt: Date | null
}

const columns = [
  'id',
  'account_id as accountId',
  'key_id as keyId',
  'decision_id as decisionId',
  'operation',
  'input',
  'idempotency_key as idempotencyKey',
  'reason',
  'violations',
  'status',
  'note',
  'used_by as usedBy',
  'answer',
  'problem',
  'created_at as createdAt',
  'expires_at as expiresAt',
  'decided_at as decidedAt',
  'card_id as cardId',
  'ended_at as endedAt',
] as const

type Row = Omit<Approval, 'status' | 'violations'> & {
  readonly status: Exclude<Approval['status'], 'expired'>
  readonly violations: Json
}

const violationsColumn = z.array(violationView)

function approvalOf({ violations, status, ...row }: Row, now: Date): Approval {
  const isExpired = status === 'pending' && row.expiresAt <= now
  return { ...row, violations: violationsColumn.parse(violations), status: isExpired ? 'expired' : status }
}

export type ApprovalCall = Pick<
  Approval,
  'accountId' | 'keyId' | 'decisionId' | 'operation' | 'input' | 'idempotencyKey' | 'reason' | 'violations'
> & { readonly fingerprint: string; readonly ttlSeconds: number; readonly at: Date }

/**
 * Requests an approval. Returns the existing one of the same decision or, for a call without an idempotency key, the
 * pending one of the same call; otherwise creates a new one.
 */
export async function requestApproval(
  { database, newId }: { database: Connection; newId: NewId },
  { at, ttlSeconds, ...call }: ApprovalCall,
): Promise<Approval> {
  const existing = await findExistingApproval(database, call, at)
  if (existing !== undefined) return existing
  const row = await database.kysely
    .insertInto('approval')
    .values({
      id: newId('appr', at),
      account_id: call.accountId,
      key_id: call.keyId,
      decision_id: call.decisionId,
      operation: call.operation,
      input: call.input,
      fingerprint: call.fingerprint,
      idempotency_key: call.idempotencyKey,
      reason: call.reason,
      violations: JSON.stringify(call.violations),
      status: 'pending',
      created_at: at,
      expires_at: new Date(at.getTime() + ttlSeconds * 1000),
    })
    // Another process may insert the approval of the same decision concurrently.
    .onConflict((conflict) => conflict.column('decision_id').doUpdateSet({ decision_id: call.decisionId }))
    .returning(columns)
    .executeTakeFirstOrThrow()
  return approvalOf(row, at)
}

async function findExistingApproval(
  database: Connection,
  { decisionId, keyId, fingerprint, idempotencyKey, reason }: Omit<ApprovalCall, 'at' | 'ttlSeconds'>,
  at: Date,
): Promise<Approval | undefined> {
  const query = database.kysely.selectFrom('approval').select(columns)
  const own = await query.where('decision_id', '=', decisionId).executeTakeFirst()
  // Another request for the same exception is a repetition, with or without a key.
  if (own !== undefined || (idempotencyKey !== null && reason === null))
    return own === undefined ? undefined : approvalOf(own, at)
  const same = await query
    .where('key_id', '=', keyId)
    .where('fingerprint', '=', fingerprint)
    .where('idempotency_key', idempotencyKey === null ? 'is' : '=', idempotencyKey)
    .where('reason', reason === null ? 'is' : 'is not', null)
    .where('status', '=', 'pending')
    .where('expires_at', '>', at)
    .orderBy('id')
    .executeTakeFirst()
  return same === undefined ? undefined : approvalOf(same, at)
}

/** Owner of approvals: an account, optionally restricted to one of its keys. */
export interface ApprovalOwner {
  readonly accountId: string
  readonly keyId: string | null
}

export async function findApproval(
  database: Connection,
  { accountId, keyId, id, now }: ApprovalOwner & { id: string; now: Date },
): Promise<Approval | undefined> {
  const query = database.kysely
    .selectFrom('approval')
    .select(columns)
    .where('id', '=', id)
    .where('account_id', '=', accountId)
  const row = await (keyId === null ? query : query.where('key_id', '=', keyId)).executeTakeFirst()
  return row === undefined ? undefined : approvalOf(row, now)
}

/** Finds the time of the latest approval request for a key's exact call. */
export async function findApprovalRequestedAt(
  database: Connection,
  { accountId, keyId, fingerprint }: { accountId: string; keyId: string; fingerprint: string },
): Promise<Date | undefined> {
  const row = await database.kysely
    .selectFrom('approval')
    .select('created_at')
    .where('account_id', '=', accountId)
    .where('key_id', '=', keyId)
    .where('fingerprint', '=', fingerprint)
    .orderBy('id', 'desc')
    .executeTakeFirst()
  return row?.created_at
}

/**
 * Lists an account's approvals, newest first: one more than the page's limit.
 * @param status filter; undefined for all.
 */
export async function listApprovals(
  database: Connection,
  {
    accountId,
    status,
    page,
    now,
  }: { accountId: string; status: Approval['status'] | undefined; page: Page; now: Date },
): Promise<Approval[]> {
  let query = database.kysely
    .selectFrom('approval')
    .select(columns)
    .where('account_id', '=', accountId)
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
  if (page.after !== null) query = query.where('id', '<', page.after)
  if (status === 'pending') query = query.where('status', '=', 'pending').where('expires_at', '>', now)
  else if (status === 'expired') query = query.where('status', '=', 'pending').where('expires_at', '<=', now)
  else if (status !== undefined) query = query.where('status', '=', status)
  return (await query.execute()).map((row) => approvalOf(row, now))
}

/**
 * Ends a pending approval once: its owner decides, or its key withdraws it. @param keyId restricts it to a key's own; null
 * for the owner. @returns undefined when it is no longer pending.
 */
export async function decideApproval(
  database: Connection,
  {
    accountId,
    keyId,
    id,
    status,
    note,
    at,
  }: ApprovalOwner & {
    id: string
    status: 'approved' | 'rejected' | 'withdrawn'
    note: string | null
    at: Date
  },
): Promise<Approval | undefined> {
  const update = database.kysely
    .updateTable('approval')
    .set({ status, note, decided_at: at })
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .where('status', '=', 'pending')
    .where('expires_at', '>', at)
    .returning(columns)
  const row = await (keyId === null ? update : update.where('key_id', '=', keyId)).executeTakeFirst()
  return row === undefined ? undefined : approvalOf(row, at)
}

/** Maximum open exceptions of a key. */
export const MAX_OPEN_EXCEPTIONS = 10

const lockStatement: Statement = {
  name: 'approval_lock',
  text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))::text as locked',
}

/**
 * Requests an exception, as {@link requestApproval}. Requests of an account wait for each other, so that concurrent ones
 * stay within the limit. @returns undefined when the key has too many open ones.
 */
export function requestException(
  { database, newId }: { database: Database; newId: NewId },
  call: ApprovalCall,
): Promise<Approval | undefined> {
  return database.transaction(async (transaction) => {
    await transaction.call(lockStatement, [call.accountId])
    const existing = await findExistingApproval(transaction, call, call.at)
    if (existing !== undefined) return existing
    if ((await countOpenExceptions(transaction, call)) >= MAX_OPEN_EXCEPTIONS) return undefined
    return requestApproval({ database: transaction, newId }, call)
  })
}

/** Counts the exceptions of a key that its owner has not decided. */
export async function countOpenExceptions(
  database: Connection,
  { keyId, at }: { keyId: string; at: Date },
): Promise<number> {
  const { open } = await database.kysely
    .selectFrom('approval')
    .select(({ fn }) => fn.countAll<bigint>().as('open'))
    .where('key_id', '=', keyId)
    .where('reason', 'is not', null)
    .where('status', '=', 'pending')
    .where('expires_at', '>', at)
    .executeTakeFirstOrThrow()
  return Number(open)
}

/** Marks pending approvals that have expired, which writes their event. */
export async function noticeExpiredApprovals({ kysely }: Connection, at: Date): Promise<void> {
  await kysely
    .updateTable('approval')
    .set({ expired_at: at })
    .where('status', '=', 'pending')
    .where('expired_at', 'is', null)
    .where('expires_at', '<=', at)
    .execute()
}

/** Stores the outcome of an approved call. The first stored outcome wins. */
export async function storeApprovalOutcome(
  database: Connection,
  { id, outcome, now }: { id: string; outcome: { answer: Json } | { problem: Json }; now: Date },
): Promise<Approval> {
  const set =
    'answer' in outcome
      ? { answer: JSON.stringify(outcome.answer) }
      : { problem: JSON.stringify(outcome.problem) }
  await database.kysely
    .updateTable('approval')
    .set(set)
    .where('id', '=', id)
    .where('status', '=', 'approved')
    .where('answer', 'is', null)
    .where('problem', 'is', null)
    .execute()
  const row = await database.kysely
    .selectFrom('approval')
    .select(columns)
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  return approvalOf(row, now)
}

/**
 * Lists approved calls without an outcome, and approved purchases that can no longer be tried again, ordered by id. @param
 * retriedSince purchases approved later may still be tried again. @param after id of the last one of the page before, or ''. */
export async function unfinishedApprovals(
  database: Connection,
  { before, retriedSince, after, limit }: { before: Date; retriedSince: Date; after: string; limit: number },
): Promise<Approval[]> {
  const rows = await database.kysely
    .selectFrom('approval')
    .select(columns)
    .where('status', '=', 'approved')
    .where('answer', 'is', null)
    .where('problem', 'is', null)
    .where('decided_at', '<', before)
    .where(({ or, eb }) =>
      or([eb('card_id', 'is', null), eb('ended_at', 'is not', null), eb('decided_at', '<=', retriedSince)]),
    )
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map((row) => approvalOf(row, before))
}
