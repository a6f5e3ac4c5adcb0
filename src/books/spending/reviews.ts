/**
 * Reviews: spends that AML requires a person to check. Each is decided once; a released spend passes exactly once
 * within a day.
 */
import { type Selectable, sql } from 'kysely'
import type { Screening } from '../../../policies/aml/screening.ts'
import type { SpendCategory } from '../../../policies/policy.ts'
import type { Log } from '../../core/base/log.ts'
import { cutPage, type Page } from '../../core/base/page.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { Money } from '../../core/money/money.ts'
import type { Connection, Statement } from '../../storage/database.ts'
import type { ArchivedDecisionTable } from '../../storage/schema.ts'

/** How long a released spend may be retried. */
export const REVIEW_RELEASE_MS = 24 * 60 * 60 * 1000

/** Hint text that explains how a review ends. */
export const REVIEW_HINT =
  'An administrator of the gateway reviews it (GET /api/admin/reviews). After its release, send exactly this request again within 24 hours: it passes once.'

/** A spend under review. @property keyId key that spends; null for a person. */
export interface ReviewedSpend {
  readonly keyId: string | null
  readonly category: SpendCategory
  readonly money: Money
  readonly chain: string
  /** Addresses, in any letter case. */
  readonly payer: string
  readonly payee: string
}

/** Builds the subject that identifies exactly this spend within its account. */
export function reviewSubject({ keyId, category, money, chain, payer, payee }: ReviewedSpend): string {
  return [keyId ?? 'person', category, money.units, money.asset, chain, payer, payee].join(' ').toLowerCase()
}

const latest: Statement = {
  name: 'aml_review_latest',
  text: `select r.id, r.status, r.lists, aml_released($1, r.id, $3) as is_released
    from aml_review r where r.account_id = $1 and r.subject = $2 and r.status <> 'open'
    order by r.id desc limit 1`,
}

/** Review decision on exactly this spend; null when none is in force. */
export type ReviewVerdict =
  | { readonly status: 'released'; readonly id: string; readonly lists: readonly string[] }
  | { readonly status: 'blocked'; readonly lists: readonly string[] }
  | null

export async function findReviewVerdict(
  connection: Connection,
  { accountId, subject, at }: { accountId: string; subject: string; at: Date },
): Promise<ReviewVerdict> {
  const [row] = await connection.call<ReviewRow>(latest, [accountId, subject, at])
  return row === undefined ? null : toReviewVerdict(row)
}

/** The newest decided review of a spend. */
export interface ReviewRow {
  readonly id: string
  readonly status: 'released' | 'blocked'
  readonly lists: readonly string[]
  readonly is_released: boolean
}

export function toReviewVerdict({ id, status, lists, is_released }: ReviewRow): ReviewVerdict {
  if (status === 'blocked') return { status, lists }
  return is_released ? { status, id, lists } : null
}

/**
 * Applies a review decision to a screening: a blocked spend is blocked, and a released one is clear if no other list
 * objects. A sanctions match is never overruled.
 */
export function applyReview(
  screening: Screening,
  verdict: ReviewVerdict,
): { readonly screening: Screening; readonly releasedReview: string | null } {
  if (screening.result === 'blocked' || verdict === null) return { screening, releasedReview: null }
  const { lists } = verdict
  if (verdict.status === 'blocked') return { screening: { result: 'blocked', lists }, releasedReview: null }
  if (screening.result === 'clear' || !screening.lists.every((list) => lists.includes(list)))
    return { screening, releasedReview: null }
  return { screening: { result: 'clear', lists }, releasedReview: verdict.id }
}

/** A review and the decision that required it. @property facts facts of that decision. */
export interface Review {
  readonly id: string
  readonly accountId: string
  readonly keyId: string | null
  readonly decisionId: string
  readonly operation: string
  readonly facts: unknown
  readonly lists: readonly string[]
  readonly status: 'open' | 'released' | 'blocked'
  readonly createdAt: Date
  readonly decidedBy: string | null
  readonly decidedAt: Date | null
  readonly reason: string | null
  readonly usedBy: string | null
}

export async function listReviews(
  database: Connection,
  { status, page }: { status: Review['status']; page: Page },
): Promise<{ rows: readonly Review[]; nextCursor: string | null }> {
  const query = database.kysely
    .selectFrom('aml_review')
    .innerJoinLateral(
      sql<Selectable<ArchivedDecisionTable>>`decision_known(aml_review.decision_id)`.as('decision'),
      (join) => join.onTrue(),
    )
    .select([
      'aml_review.id',
      'aml_review.account_id as accountId',
      'decision.key_id as keyId',
      'aml_review.decision_id as decisionId',
      'decision.operation',
      'decision.facts',
      'aml_review.lists',
      'aml_review.status',
      'aml_review.created_at as createdAt',
      'aml_review.decided_by as decidedBy',
      'aml_review.decided_at as decidedAt',
      'aml_review.reason',
      'aml_review.used_by as usedBy',
    ])
    .where('aml_review.status', '=', status)
  const rows = await (page.after === null ? query : query.where('aml_review.id', '<', page.after))
    .orderBy('aml_review.id', 'desc')
    .limit(page.limit + 1)
    .execute()
  return cutPage(rows, page)
}

/**
 * Decides a review, permanently.
 * @throws Failure `not_found`; `conflict` when it was already decided, or when the administrator owns the money.
 */
export async function decideReview(
  { database, log }: { readonly database: Connection; readonly log: Log },
  decision: { id: string; decidedBy: string; status: 'released' | 'blocked'; reason: string; at: Date },
): Promise<void> {
  const { id, decidedBy, status, reason, at } = decision
  const found = await database.kysely
    .selectFrom('aml_review')
    .select(['account_id', 'status'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (found === undefined) throw new Failure('not_found', 'There is no such review.')
  if (found.account_id === decidedBy)
    throw new Failure('conflict', 'Administrators cannot decide reviews of their own money.', {
      hint: 'Let another administrator decide.',
    })
  const { numUpdatedRows } = await database.kysely
    .updateTable('aml_review')
    .set({ status, decided_by: decidedBy, reason, decided_at: at })
    .where('id', '=', id)
    .where('status', '=', 'open')
    .executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n)
    throw new Failure('conflict', 'The review was already decided.', {
      hint: 'GET /api/admin/reviews lists the open reviews.',
    })
  log.info({ reviewId: id, decidedBy, status }, 'an AML review was decided')
}
