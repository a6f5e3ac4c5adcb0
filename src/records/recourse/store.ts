/**
 * Recourse: getting the money of a payment back, on every rail. A payment has one recourse; it takes the first way that fits, then
 * the next, and ends once. May import the books and the rails. Invariants: an ended recourse never changes; what came back is in
 * the books by evidence before it is linked, and what is linked never exceeds what was paid; nobody's word decides.
 */
import type { Selectable } from 'kysely'
import { sql } from 'kysely'
import { z } from 'zod'
import { cutPage, type Page } from '../../core/base/page.ts'
import type { Connection } from '../../storage/database.ts'
import type { RecourseTable } from '../../storage/schema.ts'

export type Recourse = Selectable<RecourseTable>

/** Kinds of payments. */
export const recourseKinds = ['purchase', 'card_transaction', 'payout', 'transfer', 'swap'] as const
export type RecourseKind = (typeof recourseKinds)[number]

export const recourseReasons = [
  'not_delivered',
  'not_as_described',
  'duplicate',
  'fraudulent',
  'canceled',
  'wrong_amount',
] as const

export const recourseStatuses = [
  'open',
  'recovered',
  'partly_recovered',
  'refused',
  'expired',
  'impossible',
] as const

/** Ways to get money back, in the order in which they are tried. */
export const recourseRoutes = [
  'cancel_authorization',
  'present_again',
  'void',
  'reclaim',
  'channel_close',
  'refund_request',
  'card_reversal',
  'card_dispute',
  'bank_recall',
  'bridge_claim',
  'none',
] as const
export type RecourseRoute = (typeof recourseRoutes)[number]

/** What a step tried, or `refund`: money that arrived. */
export const stepActions = [...recourseRoutes, 'refund'] as const
export const stepOutcomes = ['done', 'failed', 'waiting', 'refused', 'raced'] as const

/** A step as stored. @property evidence facts in words, which others may have written. */
const storedStep = z.object({
  at: z.string(),
  action: z.enum(stepActions),
  outcome: z.enum(stepOutcomes),
  evidence: z.record(z.string(), z.string()).optional(),
})
export type RecourseStep = z.output<typeof storedStep>

export function parseSteps({ steps }: Pick<Recourse, 'steps'>): readonly RecourseStep[] {
  return z.array(storedStep).parse(steps)
}

/** Finds the latest step of an action. */
export function findStep(
  recourse: Pick<Recourse, 'steps'>,
  action: RecourseStep['action'],
): RecourseStep | undefined {
  return parseSteps(recourse).findLast((step) => step.action === action)
}

export interface NewRecourse {
  readonly id: string
  readonly accountId: string
  readonly keyId: string | null
  readonly decisionId: string | null
  readonly objectKind: Recourse['object_kind']
  readonly objectId: string
  readonly reason: Recourse['reason']
  readonly note: string | null
  readonly route: RecourseRoute
  readonly asset: string
  readonly claimed: bigint
  readonly wasDelivered: boolean
  readonly deadline: Date
  readonly at: Date
}

/** Opens a recourse unless the payment has one. */
export async function insertRecourse({ kysely }: Connection, opened: NewRecourse): Promise<void> {
  await kysely
    .insertInto('recourse')
    .values({
      id: opened.id,
      account_id: opened.accountId,
      key_id: opened.keyId,
      decision_id: opened.decisionId,
      object_kind: opened.objectKind,
      object_id: opened.objectId,
      reason: opened.reason,
      note: opened.note,
      route: opened.route,
      asset: opened.asset,
      claimed: opened.claimed,
      was_delivered: opened.wasDelivered,
      steps: '[]',
      deadline: opened.deadline,
      busy_until: opened.at,
      next_at: opened.at,
      created_at: opened.at,
      updated_at: opened.at,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** A key sees those of its own payments, a person all of the account. */
export interface RecourseOwner {
  readonly accountId: string
  readonly keyId: string | null
}

type RecourseName = { readonly id: string } | { readonly objectKind: RecourseKind; readonly objectId: string }

export async function findRecourse(
  { kysely }: Connection,
  { accountId, keyId }: RecourseOwner,
  name: RecourseName,
): Promise<Recourse | undefined> {
  let query = kysely.selectFrom('recourse').selectAll().where('account_id', '=', accountId)
  if (keyId !== null) query = query.where('key_id', '=', keyId)
  if ('id' in name) return query.where('id', '=', name.id).executeTakeFirst()
  const { objectKind, objectId } = name
  return query.where('object_kind', '=', objectKind).where('object_id', '=', objectId).executeTakeFirst()
}

/** Finds a recourse of any account. */
export function findAnyRecourse({ kysely }: Connection, id: string): Promise<Recourse | undefined> {
  return kysely.selectFrom('recourse').selectAll().where('id', '=', id).executeTakeFirst()
}

/** @param objectId of the payment; undefined for all. */
export async function listRecourse(
  { kysely }: Connection,
  {
    accountId,
    keyId,
    objectId,
    page,
  }: RecourseOwner & { readonly objectId?: string | undefined; readonly page: Page },
): Promise<{ rows: readonly Recourse[]; nextCursor: string | null }> {
  let query = kysely
    .selectFrom('recourse')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('id', 'desc')
    .limit(page.limit + 1)
  if (keyId !== null) query = query.where('key_id', '=', keyId)
  if (objectId !== undefined) query = query.where('object_id', '=', objectId)
  if (page.after !== null) query = query.where('id', '<', page.after)
  return cutPage(await query.execute(), page)
}

/** Finds open ones that are due and that nobody works on. */
export async function dueRecourse(
  { kysely }: Connection,
  { at, limit }: { at: Date; limit: number },
): Promise<string[]> {
  const rows = await kysely
    .selectFrom('recourse')
    .select('id')
    .where('status', '=', 'open')
    .where('next_at', '<=', at)
    .where('busy_until', '<=', at)
    .orderBy('next_at')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

/** Claims an open one until a moment. @returns undefined when another process works on it, or it has ended. */
export function claimRecourse(
  { kysely }: Connection,
  { id, until, at }: { id: string; until: Date; at: Date },
): Promise<Recourse | undefined> {
  return kysely
    .updateTable('recourse')
    .set({ busy_until: until })
    .where('id', '=', id)
    .where('status', '=', 'open')
    .where('busy_until', '<=', at)
    .returningAll()
    .executeTakeFirst()
}

/** Keeps a claim for longer. */
export async function renewClaim(
  { kysely }: Connection,
  { id, until }: { id: string; until: Date },
): Promise<void> {
  await kysely
    .updateTable('recourse')
    .set({ busy_until: until })
    .where('id', '=', id)
    .where('status', '=', 'open')
    .execute()
}

/** Gives a claimed one back. @param nextAt when it is looked at again. */
export async function releaseRecourse(
  { kysely }: Connection,
  { id, nextAt, at }: { id: string; nextAt: Date; at: Date },
): Promise<void> {
  await kysely
    .updateTable('recourse')
    .set({ busy_until: at, next_at: nextAt })
    .where('id', '=', id)
    .where('status', '=', 'open')
    .execute()
}

/** What became of a step. @property end its end, in the same commit. @property claimed what is claimed from now on. */
export interface Progress {
  readonly action: RecourseStep['action']
  readonly outcome: RecourseStep['outcome']
  readonly evidence?: Readonly<Record<string, string>>
  readonly route?: RecourseRoute
  readonly claimed?: bigint
  /** All that is back, in smallest units. */
  readonly recovered?: bigint
  readonly end?: {
    readonly status: Exclude<Recourse['status'], 'open'>
    readonly isDelivered?: true
    readonly isAllBack?: true
  }
}

/** Records a step, and the end that it brings. @returns the recourse as it is afterwards; an ended one is not changed. */
export async function recordStep(
  { kysely }: Connection,
  recourse: Recourse,
  { progress, at }: { progress: Progress; at: Date },
): Promise<Recourse> {
  const { action, outcome, evidence, route, claimed, recovered, end } = progress
  const step = { at: at.toISOString(), action, outcome, ...(evidence === undefined ? {} : { evidence }) }
  const changed = await kysely
    .updateTable('recourse')
    .set((eb) => ({
      steps: sql<string>`steps || ${JSON.stringify([step])}::jsonb`,
      updated_at: at,
      ...(route === undefined ? {} : { route }),
      ...(claimed === undefined ? {} : { claimed }),
      ...(recovered === undefined ? {} : { recovered }),
      ...(end === undefined
        ? {}
        : {
            status: end.status,
            ended_at: at,
            ...(end.isDelivered === true ? { is_delivered: true } : {}),
            ...(end.isAllBack === true ? { recovered: eb.ref('claimed') } : {}),
          }),
    }))
    .where('id', '=', recourse.id)
    .where('status', '=', 'open')
    .returningAll()
    .executeTakeFirst()
  return (
    changed ??
    kysely.selectFrom('recourse').selectAll().where('id', '=', recourse.id).executeTakeFirstOrThrow()
  )
}

/** What came back of payments, and their recourse, by the payment's id. @property refunded smallest units. */
export async function findReturned(
  { kysely }: Connection,
  { kind, ids }: { kind: Recourse['object_kind']; ids: readonly string[] },
): Promise<ReadonlyMap<string, { readonly recourseId: string; readonly refunded: bigint }>> {
  if (ids.length === 0) return new Map()
  const rows = await kysely
    .selectFrom('recourse')
    .leftJoin('refund', 'refund.recourse_id', 'recourse.id')
    .select(({ fn }) => [
      'recourse.object_id as id',
      'recourse.id as recourseId',
      fn.coalesce(fn.sum<string>('refund.units'), sql<string>`0`).as('refunded'),
    ])
    .where('recourse.object_kind', '=', kind)
    .where('recourse.object_id', 'in', ids)
    .groupBy(['recourse.object_id', 'recourse.id'])
    .execute()
  return new Map(rows.map(({ id, recourseId, refunded }) => [id, { recourseId, refunded: BigInt(refunded) }]))
}
