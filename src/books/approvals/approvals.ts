/**
 * Approvals: agent calls that need the owner's consent. Each is bound to the exact call, decided once and run once. Those of
 * declined card purchases run nothing: the same purchase passes once when its card tries it again in time.
 */
import { z } from 'zod'
import type { NewId } from '../../core/base/ids.ts'
import type { Json } from '../../core/base/json.ts'
import type { Page } from '../../core/base/page.ts'
import type { Violation } from '../../core/failures/failure.ts'
import { type Connection, callForRow, type Database, type Statement } from '../../storage/database.ts'
import { violationView } from '../spending/violation-view.ts'

/** How long an approved card purchase may be tried again: 15 minutes. */
export const PURCHASE_RETRY_MS = 15 * 60_000

/** An approval. `expired` is a pending one past its expiry. */
export interface Approval {
  readonly id: string
  readonly accountId: string
  /** Key that asked; null: a person did. */
  readonly keyId: string | null
  /** Person who asked, of the account's people; null: a key did. They make the call again once it is approved. */
  readonly askerId: string | null
  /** Different people who must agree. */
  readonly needed: number
  /** Decision that asked for it; null for a change, which spends nothing. */
  readonly decisionId: string | null
  readonly operation: string
  /** Input of the call as its original JSON text. */
  readonly input: string
  readonly idempotencyKey: string | null
  /** The address or recipient that the call's contact had, as the kernel stores it; null: the call names no contact. */
  readonly payee: Json
  /** Agent's reason; null without one. */
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
  /** The input lacks what is not kept: once it is approved, its caller makes the call again. */
  readonly awaitsCaller: boolean
}

const columns = [
  'id',
  'account_id as accountId',
  'key_id as keyId',
  'asker_id as askerId',
  'needed',
  'decision_id as decisionId',
  'operation',
  'input',
  'idempotency_key as idempotencyKey',
  'payee',
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
  'awaits_caller as awaitsCaller',
] as const

type Row = Omit<Approval, 'status' | 'violations'> & {
  readonly status: Exclude<Approval['status'], 'expired'>
  readonly violations: Json
}

const violationsColumn = z.array(violationView)

function parseApproval({ violations, status, ...row }: Row, now: Date): Approval {
  const isExpired = status === 'pending' && row.expiresAt <= now
  return { ...row, violations: violationsColumn.parse(violations), status: isExpired ? 'expired' : status }
}

export type ApprovalCall = Pick<
  Approval,
  | 'accountId'
  | 'keyId'
  | 'decisionId'
  | 'operation'
  | 'input'
  | 'idempotencyKey'
  | 'reason'
  | 'violations'
  | 'awaitsCaller'
> & {
  readonly payee?: Json
  /** Person who asks; absent or null: a key. */
  readonly askerId?: string | null
  readonly fingerprint: string
  readonly ttlSeconds: number
  readonly at: Date
  /** The key asks for it by itself, before or after the call. */
  readonly isAsked: boolean
  /** The call repeats an earlier one with the same idempotency key. */
  readonly isReplayed: boolean
}

/**
 * Requests an approval: one for each call. Returns the one that the call already has, with the reason added; otherwise creates
 * one. Requests of an account wait for each other, so that concurrent ones stay within the limits.
 * @returns undefined when the key has ten open approvals, or the account a hundred, or when
 * the key keeps withdrawing them.
 */
export function requestApproval(
  { database, newId }: { database: Database; newId: NewId },
  { ttlSeconds, ...asked }: ApprovalCall,
): Promise<Approval | undefined> {
  const { at, accountId, keyId, askerId = null } = asked
  return database.transaction(async (transaction) => {
    await transaction.call(lockStatement, [accountId])
    const existing = await findCallApproval(transaction, asked)
    if (existing !== undefined && (existing.status !== 'pending' || covers(existing, asked)))
      return join(transaction, existing, asked)
    // The owner has not seen every rule that it breaks by now: the request is replaced.
    const call = { ...asked, idempotencyKey: asked.idempotencyKey ?? existing?.idempotencyKey ?? null }
    if (existing !== undefined) {
      const { id } = existing
      await decideApproval(transaction, { accountId, keyId, id, status: 'withdrawn', note: null, at })
    }
    if (await hasTooManyOpen(transaction, { accountId, keyId, askerId, at })) return undefined
    const row = await transaction.kysely
      .insertInto('approval')
      .values({
        id: newId('appr', at),
        account_id: accountId,
        key_id: keyId,
        asker_id: askerId,
        decision_id: call.decisionId,
        operation: call.operation,
        input: call.input,
        fingerprint: call.fingerprint,
        idempotency_key: call.idempotencyKey,
        payee: call.payee == null ? null : JSON.stringify(call.payee),
        reason: call.reason,
        violations: JSON.stringify(call.violations),
        is_asked: call.isAsked,
        awaits_caller: call.awaitsCaller,
        status: 'pending',
        created_at: at,
        expires_at: new Date(at.getTime() + ttlSeconds * 1000),
      })
      .returning(columns)
      .executeTakeFirstOrThrow()
    return parseApproval(row, at)
  })
}

const lockStatement: Statement = {
  name: 'approval_lock',
  text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))::text as locked',
}

/** Open approvals that a person has asked for, at most. */
const MAX_OPEN_OF_PERSON = 10

/** True if a key, or all keys of its account, have as many approvals as they may have, open or withdrawn just now. */
export async function hasTooManyOpen(
  database: Connection,
  {
    accountId,
    keyId,
    askerId = null,
    at,
  }: { accountId: string; keyId: string | null; askerId?: string | null; at: Date },
): Promise<boolean> {
  if (askerId !== null) {
    const open = await database.kysely
      .selectFrom('approval')
      .select('id')
      .where('asker_id', '=', askerId)
      .where('status', '=', 'pending')
      .where('expires_at', '>', at)
      .limit(MAX_OPEN_OF_PERSON)
      .execute()
    return open.length === MAX_OPEN_OF_PERSON
  }
  const { full } = await callForRow<{ full: boolean }>(database, fullStatement, [accountId, keyId, at])
  return full
}

const fullStatement: Statement = {
  name: 'approvals_full',
  text: 'select approvals_full($1, $2, $3) as full',
}

/**
 * Finds the approval that a call has. A call with an idempotency key is the one with that key, or the one that was asked for
 * without a key; a call without one is the pending one of the same input.
 */
async function findCallApproval(
  database: Connection,
  {
    decisionId,
    keyId,
    askerId = null,
    fingerprint,
    idempotencyKey,
    isAsked,
    isReplayed,
    at,
  }: Omit<ApprovalCall, 'ttlSeconds'>,
): Promise<Approval | undefined> {
  const query = selectApprovals(database, { keyId, askerId, fingerprint })
  if (idempotencyKey !== null) {
    const row = await query.where('idempotency_key', '=', idempotencyKey).executeTakeFirst()
    const named = row === undefined ? undefined : parseApproval(row, at)
    const isDecided = named?.status === 'approved' || named?.status === 'rejected'
    const isSame = isReplayed || (named !== undefined && named.decisionId === decisionId)
    if (named !== undefined && (named.status === 'pending' || isSame || (isAsked && isDecided))) return named
  }
  const isAny = isAsked && idempotencyKey === null
  const unnamed = isAny ? query : query.where('idempotency_key', 'is', null)
  // A call with a key is another payment than one without; asking for it made none.
  const isNew = idempotencyKey !== null && !isAsked
  const open = (isNew ? unnamed.where('is_asked', '=', true) : unnamed).where('expires_at', '>', at)
  const row =
    (await open.where('status', '=', 'pending').executeTakeFirst()) ??
    // A no holds for the same input, for as long as it could have been approved.
    (idempotencyKey === null ? await open.where('status', '=', 'rejected').executeTakeFirst() : undefined)
  return row === undefined ? undefined : parseApproval(row, at)
}

/** True if a key's call with this idempotency key waits for approval, and is another call. */
export async function belongsToAnotherCall(
  { kysely }: Connection,
  { keyId, fingerprint, idempotencyKey, at }: Parameters<typeof findAskedApproval>[1],
): Promise<boolean> {
  if (idempotencyKey === null) return false
  const row = await kysely
    .selectFrom('approval')
    .select('id')
    .where('key_id', '=', keyId)
    .where('idempotency_key', '=', idempotencyKey)
    .where('fingerprint', '<>', fingerprint)
    .where('status', '=', 'pending')
    .where('expires_at', '>', at)
    .executeTakeFirst()
  return row !== undefined
}

/** Approvals of exactly this call of a key or a person, the newest first. */
function selectApprovals(
  { kysely }: Connection,
  { keyId, askerId = null, fingerprint }: Caller & Pick<ApprovalCall, 'fingerprint'>,
) {
  const query = kysely
    .selectFrom('approval')
    .select(columns)
    .where('fingerprint', '=', fingerprint)
    .orderBy('id', 'desc')
  return keyId === null ? query.where('asker_id', '=', askerId) : query.where('key_id', '=', keyId)
}

/** Who asks: a key, or a person. */
interface Caller {
  readonly keyId: string | null
  readonly askerId?: string | null
}

/** True if the owner sees every rule that the call breaks by now. */
function covers({ violations: seen }: Approval, { violations }: Pick<ApprovalCall, 'violations'>): boolean {
  return violations.every(({ rule, limit }) => seen.some((one) => one.rule === rule && one.limit === limit))
}

/** Adds the reason and the idempotency key of a repeated request to a pending approval. */
async function join(
  { kysely }: Connection,
  approval: Approval,
  { reason, idempotencyKey, at }: Pick<ApprovalCall, 'reason' | 'idempotencyKey' | 'at'>,
): Promise<Approval> {
  const added = {
    ...(reason === null || reason === approval.reason ? {} : { reason }),
    ...(idempotencyKey === null || approval.idempotencyKey !== null
      ? {}
      : { idempotency_key: idempotencyKey }),
  }
  if (approval.status !== 'pending' || Object.keys(added).length === 0) return approval
  const row = await kysely
    .updateTable('approval')
    .set(added)
    .where('id', '=', approval.id)
    .where('status', '=', 'pending')
    .returning(columns)
    .executeTakeFirst()
  return row === undefined ? approval : parseApproval(row, at)
}

/**
 * Finds the approval that a denied call asked for: pending, or rejected for as long as it was open. @param idempotencyKey null:
 * the same input without a key.
 */
export async function findAskedApproval(
  database: Connection,
  {
    keyId,
    fingerprint,
    idempotencyKey,
    at,
  }: Pick<ApprovalCall, 'keyId' | 'fingerprint' | 'idempotencyKey' | 'at'>,
): Promise<Approval | undefined> {
  const row = await selectApprovals(database, { keyId, fingerprint })
    .where((where) =>
      where.or([
        where('status', '=', 'pending'),
        ...(idempotencyKey === null
          ? [where.and([where('idempotency_key', 'is', null), where('expires_at', '>', at)])]
          : [where('idempotency_key', '=', idempotencyKey)]),
      ]),
    )
    .executeTakeFirst()
  return row === undefined ? undefined : parseApproval(row, at)
}

/** Finds the approval under which a caller may make exactly this call, which only it can make. */
export async function findCallersApproval(
  database: Connection,
  {
    keyId,
    askerId,
    accountId,
    fingerprint,
    idempotencyKey,
    at,
  }: Caller & Pick<ApprovalCall, 'fingerprint' | 'idempotencyKey' | 'at'> & { readonly accountId?: string },
): Promise<Approval | undefined> {
  const query = selectApprovals(database, { keyId, askerId: askerId ?? null, fingerprint })
  const own = accountId === undefined ? query : query.where('account_id', '=', accountId)
  const row = await own
    .where('idempotency_key', idempotencyKey === null ? 'is' : '=', idempotencyKey)
    .where('awaits_caller', '=', true)
    .where('status', '=', 'approved')
    .where('answer', 'is', null)
    .where('problem', 'is', null)
    .where('expires_at', '>', at)
    .executeTakeFirst()
  return row === undefined ? undefined : parseApproval(row, at)
}

/** Finds the open request to resume a key that a limit of equal spends has paused. */
export async function findResumeApproval(
  { kysely }: Connection,
  { keyId, at }: Pick<ApprovalCall, 'keyId' | 'at'>,
): Promise<{ readonly id: string } | undefined> {
  return kysely
    .selectFrom('approval')
    .select('id')
    .where('key_id', '=', keyId)
    .where('operation', '=', 'agents.resume')
    .where('status', '=', 'pending')
    .where('expires_at', '>', at)
    .executeTakeFirst()
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
  return row === undefined ? undefined : parseApproval(row, now)
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
  return (await query.execute()).map((row) => parseApproval(row, now))
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
  return row === undefined ? undefined : parseApproval(row, at)
}

const agreeStatement: Statement = {
  name: 'approval_agree',
  text: 'select verdict, agreed from approval_agree($1, $2, $3, $4)',
}

/**
 * Counts a person's yes to a pending approval. Call it in a transaction that has locked the account's people. @returns `enough`: the
 * last of the people who must agree; `waits`: others must too; `own`: the person asked for it; `ended`: it is not pending.
 */
export async function agreeToApproval(
  database: Connection,
  { accountId, id, personId, at }: { accountId: string; id: string; personId: string; at: Date },
): Promise<'enough' | 'waits' | 'own' | 'ended'> {
  const { verdict } = await callForRow<{ verdict: 'enough' | 'waits' | 'own' | 'ended'; agreed: number }>(
    database,
    agreeStatement,
    [id, accountId, personId, at],
  )
  return verdict
}

const agreedStatement: Statement = {
  name: 'approvals_agreed',
  text: `select a.id, g.person_id, g.display_name, g.at from unnest($1::text[]) a(id), approval_agreed(a.id) g`,
}

export interface Agreement {
  readonly personId: string
  readonly displayName: string
  readonly at: Date
}

/** Lists who has agreed to approvals and counts, in their order. */
export async function listAgreements(
  database: Connection,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly Agreement[]>> {
  const rows = await database.call<{ id: string; person_id: string; display_name: string; at: Date }>(
    agreedStatement,
    [[...ids]],
  )
  const found = new Map<string, Agreement[]>()
  for (const { id, person_id: personId, display_name: displayName, at } of rows)
    found.set(id, [...(found.get(id) ?? []), { personId, displayName, at }])
  return found
}

/** Marks pending approvals that have expired, which writes their event, and rejects those of keys that have ended. */
export async function noticeExpiredApprovals({ kysely }: Connection, at: Date): Promise<void> {
  await kysely
    .updateTable('approval')
    .set({ status: 'rejected', decided_at: at })
    .where('status', '=', 'pending')
    .where('expires_at', '>', at)
    .where('key_id', 'in', (of) => of.selectFrom('access_key').select('id').where('expires_at', '<=', at))
    .execute()
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
  return parseApproval(row, now)
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
    .where(({ or, eb }) =>
      or([eb('awaits_caller', '=', false), eb('used_by', 'is not', null), eb('expires_at', '<=', before)]),
    )
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map((row) => parseApproval(row, before))
}
