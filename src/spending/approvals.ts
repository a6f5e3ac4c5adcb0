/** Approvals: what an agent may do only once its owner has said so. Bound to the exact call, decided once, run once. */
import type { NewId } from '../base/ids.ts'
import type { Json } from '../base/json.ts'
import type { Page } from '../base/page.ts'
import type { Connection } from '../storage/database.ts'

/** An approval. `expired` is a pending one whose time is over. */
export interface Approval {
  readonly id: string
  readonly accountId: string
  readonly keyId: string
  readonly decisionId: string
  readonly operation: string
  /** The call's input as JSON text, as it was written. */
  readonly input: string
  readonly idempotencyKey: string | null
  readonly status: 'pending' | 'approved' | 'rejected' | 'expired'
  /** What the call answered, once it has run. */
  readonly answer: Json | null
  /** What it was refused with, where it was. */
  readonly problem: Json | null
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly decidedAt: Date | null
}

const columns = [
  'id',
  'account_id as accountId',
  'key_id as keyId',
  'decision_id as decisionId',
  'operation',
  'input',
  'idempotency_key as idempotencyKey',
  'status',
  'answer',
  'problem',
  'created_at as createdAt',
  'expires_at as expiresAt',
  'decided_at as decidedAt',
] as const

type Row = Omit<Approval, 'status'> & { readonly status: 'pending' | 'approved' | 'rejected' }

function approvalOf(row: Row, now: Date): Approval {
  return row.status === 'pending' && row.expiresAt <= now ? { ...row, status: 'expired' } : row
}

/** A call that asks. */
export type ApprovalCall = Pick<
  Approval,
  'accountId' | 'keyId' | 'decisionId' | 'operation' | 'input' | 'idempotencyKey'
> & { readonly fingerprint: string; readonly ttlSeconds: number; readonly at: Date }

/**
 * The approval that a call waits for: the one that its decision asked for, or for a call without an idempotency key the one
 * that the same call waits for already, or a new one.
 */
export async function askApproval(
  { database, newId }: { database: Connection; newId: NewId },
  { at, ttlSeconds, ...asking }: ApprovalCall,
): Promise<Approval> {
  const asked = await waitingFor(database, asking, at)
  if (asked !== undefined) return asked
  const row = await database.kysely
    .insertInto('approval')
    .values({
      id: newId('appr', at),
      account_id: asking.accountId,
      key_id: asking.keyId,
      decision_id: asking.decisionId,
      operation: asking.operation,
      input: asking.input,
      fingerprint: asking.fingerprint,
      idempotency_key: asking.idempotencyKey,
      status: 'pending',
      answer: null,
      problem: null,
      created_at: at,
      expires_at: new Date(at.getTime() + ttlSeconds * 1000),
      decided_at: null,
    })
    // Another process answers the same call at this moment.
    .onConflict((conflict) => conflict.column('decision_id').doUpdateSet({ decision_id: asking.decisionId }))
    .returning(columns)
    .executeTakeFirstOrThrow()
  return approvalOf(row, at)
}

async function waitingFor(
  database: Connection,
  { decisionId, keyId, fingerprint, idempotencyKey }: Omit<ApprovalCall, 'at' | 'ttlSeconds'>,
  at: Date,
): Promise<Approval | undefined> {
  const query = database.kysely.selectFrom('approval').select(columns)
  const own = await query.where('decision_id', '=', decisionId).executeTakeFirst()
  if (own !== undefined || idempotencyKey !== null) return own === undefined ? undefined : approvalOf(own, at)
  const same = await query
    .where('key_id', '=', keyId)
    .where('fingerprint', '=', fingerprint)
    .where('idempotency_key', 'is', null)
    .where('status', '=', 'pending')
    .where('expires_at', '>', at)
    .orderBy('id')
    .executeTakeFirst()
  return same === undefined ? undefined : approvalOf(same, at)
}

/** Whose approvals: all of an account's, or those of one of its keys. */
export interface ApprovalOwner {
  readonly accountId: string
  readonly keyId: string | null
}

/** One approval, or undefined where its owner has no such. */
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

/** When a key's very call last asked for an approval, or undefined where it never did. */
export async function findAskedAt(
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

/** An account's approvals, newest first: one more than the page's limit. @param status those alone. */
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

/** Decides a pending approval, once. @returns undefined where it is not pending any more. */
export async function decideApproval(
  database: Connection,
  { accountId, id, status, at }: { accountId: string; id: string; status: 'approved' | 'rejected'; at: Date },
): Promise<Approval | undefined> {
  const row = await database.kysely
    .updateTable('approval')
    .set({ status, decided_at: at })
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .where('status', '=', 'pending')
    .where('expires_at', '>', at)
    .returning(columns)
    .executeTakeFirst()
  return row === undefined ? undefined : approvalOf(row, at)
}

/** Keeps what an approved call came to; the first to say so has the word. */
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

/** Approved calls without an outcome, decided before a moment, oldest first. */
export async function unfinishedApprovals(
  database: Connection,
  before: Date,
  limit: number,
): Promise<Approval[]> {
  const rows = await database.kysely
    .selectFrom('approval')
    .select(columns)
    .where('status', '=', 'approved')
    .where('answer', 'is', null)
    .where('problem', 'is', null)
    .where('decided_at', '<', before)
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map((row) => approvalOf(row, before))
}
