/** Reviews: what AML wants a person to see. One decision each; released, exactly that spend passes once within a day. */
import type { Screening } from '../../policies/aml/screening.ts'
import type { SpendCategory } from '../../policies/policy.ts'
import type { Log } from '../base/log.ts'
import { onePage, type Page } from '../base/page.ts'
import { Failure } from '../failures/failure.ts'
import type { Money } from '../money/money.ts'
import type { Connection, Statement } from '../storage/database.ts'

/** How long a released spend may be sent again. */
export const REVIEW_RELEASE_MS = 24 * 60 * 60 * 1000

/** The sentence of a hint that says how a review ends. */
export const REVIEW_HINT =
  'An administrator of the gateway looks at it (GET /api/admin/reviews). Once it is released, send exactly this request again within 24 hours: it passes once.'

/** A spend that reviews are kept of. @property keyId of the key that spends; null: a person does. */
export interface ReviewedSpend {
  readonly keyId: string | null
  readonly category: SpendCategory
  readonly money: Money
  readonly chain: string
  /** Addresses in any case. */
  readonly payer: string
  readonly payee: string
}

/** The name of exactly this spend among those of its account. */
export function reviewSubject({ keyId, category, money, chain, payer, payee }: ReviewedSpend): string {
  return [keyId ?? 'person', category, money.units, money.asset, chain, payer, payee].join(' ').toLowerCase()
}

const latest: Statement = {
  name: 'aml_review_latest',
  text: `select r.id, r.status, r.lists, aml_released($1, r.id, $3) as is_released
    from aml_review r where r.account_id = $1 and r.subject = $2 and r.status <> 'open'
    order by r.id desc limit 1`,
}

/** What people have decided on exactly this spend; null: nothing that still holds. */
export type ReviewVerdict =
  | { readonly status: 'released'; readonly id: string; readonly lists: readonly string[] }
  | { readonly status: 'blocked'; readonly lists: readonly string[] }
  | null

/** Reads what people have decided on exactly this spend. */
export async function findReviewVerdict(
  connection: Connection,
  { accountId, subject, at }: { accountId: string; subject: string; at: Date },
): Promise<ReviewVerdict> {
  const [row] = await connection.call<{
    id: string
    status: 'released' | 'blocked'
    lists: readonly string[]
    is_released: boolean
  }>(latest, [accountId, subject, at])
  if (row === undefined) return null
  const { id, status, lists } = row
  if (status === 'blocked') return { status, lists }
  return row.is_released ? { status, id, lists } : null
}

/**
 * The screening after a person's decision: what they blocked is blocked, and what they released is clear where nothing else
 * objects. A sanctions list is never overruled.
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

/** A review and the decision that asks for it. @property facts what the decision was taken on. */
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

/** A page of reviews, newest first. */
export async function listReviews(
  database: Connection,
  { status, page }: { status: Review['status']; page: Page },
): Promise<{ rows: readonly Review[]; nextCursor: string | null }> {
  const query = database.kysely
    .selectFrom('aml_review')
    .innerJoin('decision', 'decision.id', 'aml_review.decision_id')
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
  return onePage(rows, page)
}

/** Decides on a review, for good. @throws Failure `not_found`, `conflict` where it was decided on, or by who sends the money. */
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
    throw new Failure('conflict', 'Nobody decides on their own money.', {
      hint: 'Another administrator decides.',
    })
  const { numUpdatedRows } = await database.kysely
    .updateTable('aml_review')
    .set({ status, decided_by: decidedBy, reason, decided_at: at })
    .where('id', '=', id)
    .where('status', '=', 'open')
    .executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n)
    throw new Failure('conflict', 'The review was decided on.', {
      hint: 'GET /api/admin/reviews lists what waits.',
    })
  log.info({ reviewId: id, decidedBy, status }, 'an AML review was decided on')
}
