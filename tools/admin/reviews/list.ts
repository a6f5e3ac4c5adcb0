import { z } from 'zod'
import { usdOfMicros } from '../../../policies/usd.ts'
import { listReviews, REVIEW_RELEASE_MS } from '../../../src/books/spending/reviews.ts'
import { cutPage, nextCursor, pageMembers, toPage } from '../../../src/core/base/page.ts'
import { untrustedTextOrNull } from '../../../src/core/base/untrusted-text.ts'
import { decimalOf } from '../../../src/core/money/money.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import {
  listRecoveryReviews,
  type RecoveryReview,
  recoveryProof,
} from '../../../src/people/identity/recovery-reviews.ts'
import { type DepositReview, listDepositReviews } from '../../../src/rails/banking/deposit-reviews.ts'
import {
  listMovementReviews,
  type MovementReview,
} from '../../../src/rails/wallets/reconcile/movement-reviews.ts'

const statuses = ['open', 'released', 'blocked'] as const
const text = z.string().nullable().catch(null)

/** Facts of a decision that the reviewer sees. */
const shownFacts = z.object({
  amount: text,
  asset: text,
  usdMicros: z.string().regex(/^\d+$/).nullable().catch(null),
  counterparty: text,
  chain: text,
})

export default defineTool({
  name: 'admin.reviews.list',
  title: 'Reviews',
  summary:
    'List the spends and deposits that AML has flagged for review, and recoveries of accounts that an administrator locked.',
  description:
    'A spend was denied with `aml_blocked` and `screening.result: review`; a deposit was not credited. The person of a recovery has proved to be the owner, and the account stays locked until the decision. Deposits from a blocked address are listed as `blocked`, without a decision; those with the list `screening_unavailable` are screened again, and released or blocked by the answer. Excludes missing Travel Rule data, which the sender supplies, and names on a sanctions list, which GET /api/admin/travel-rules lists.',
  route: 'GET /api/admin/reviews',
  who: 'admin',
  effect: 'read',
  proof: 'step-up',
  input: z.strictObject({
    ...pageMembers,
    status: z.enum(statuses).optional().describe('Filter by status; `open` by default.'),
  }),
  output: z.strictObject({
    reviews: z
      .array(
        z.strictObject({
          id: z.string().describe('`rev_…`'),
          accountId: z
            .string()
            .describe('`acct_…`: the sender of a spend, the receiver of a deposit, the account to recover.'),
          agentId: z.string().nullable().describe('`key_…`; null when a person sends.'),
          decisionId: text.describe(
            '`dec_…`: denial that requires the review; null for a deposit or recovery.',
          ),
          operation: z
            .string()
            .describe(
              'The operation, such as `wallets.transfer`; `deposit` for a deposit, `recovery` for a recovery.',
            ),
          direction: z
            .enum(['in', 'out'])
            .nullable()
            .describe('`out`: a spend; `in`: a deposit; null for a recovery.'),
          proofs: z
            .array(recoveryProof)
            .nullable()
            .describe(
              'Proofs shown for a recovery; `guest`: the account id alone. Null for everything else.',
            ),
          amount: text.describe('Amount as a decimal string.'),
          asset: text.describe('Asset by symbol.'),
          usd: text.describe('Value in USD, as a decimal string.'),
          counterparty: untrustedTextOrNull('Payee of a spend; name or address of the sender of a deposit.'),
          chain: text.describe('Chain by name.'),
          lists: z.array(z.string()).describe('Lists and rules that require the review.'),
          status: z.enum(statuses).describe('`open`: not decided yet.'),
          createdAt: z.string().describe('When it was created, ISO 8601 UTC.'),
          decidedBy: text.describe('`acct_…`: administrator who decided; null while open.'),
          decidedAt: text.describe('When it was decided, ISO 8601 UTC; null while open.'),
          reason: text.describe('Reason for the decision; null while open.'),
          releasedUntil: text.describe(
            'Deadline for sending the released spend again, ISO 8601 UTC; null otherwise.',
          ),
          usedBy: text.describe('`dec_…`: decision that used the release; null: unused.'),
        }),
      )
      .describe('Newest first.'),
    nextCursor,
  }),
  failures: [],
  example: {},
  run: async (context, { status = 'open', ...input }) => {
    const page = toPage(input)
    const spends = await listReviews(context.database, { status, page })
    const deposits = [
      ...(await listDepositReviews(context, { status, page })).map((review) => ({ ...review, chain: null })),
      ...(await listMovementReviews(context.database, { status, page })),
    ].map(viewDepositReview)
    const recoveries = (await listRecoveryReviews(context.database, { status, page })).map(viewRecovery)
    const reviews = spends.rows.map(({ facts, keyId, createdAt, decidedAt, lists, ...review }) => {
      const { usdMicros, ...shown } = shownFacts.parse(facts)
      const until =
        review.status === 'released' && decidedAt !== null ? decidedAt.getTime() + REVIEW_RELEASE_MS : null
      return {
        ...review,
        ...shown,
        agentId: keyId,
        direction: 'out' as const,
        proofs: null,
        usd: usdMicros === null ? null : usdOfMicros(BigInt(usdMicros)),
        lists: [...lists],
        createdAt: createdAt.toISOString(),
        decidedAt: decidedAt?.toISOString() ?? null,
        releasedUntil: until === null ? null : new Date(until).toISOString(),
      }
    })
    const all = [...reviews, ...deposits, ...recoveries].sort((one, other) => (one.id < other.id ? 1 : -1))
    const cut = cutPage(all, page)
    return { reviews: [...cut.rows], nextCursor: cut.nextCursor ?? spends.nextCursor }
  },
})

function viewDepositReview({
  money,
  sender,
  lists,
  createdAt,
  decidedAt,
  ...review
}: (DepositReview & { readonly chain: null }) | MovementReview) {
  const { id, accountId, chain, status, decidedBy, reason } = review
  return {
    id,
    accountId,
    agentId: null,
    decisionId: null,
    operation: 'deposit',
    direction: 'in' as const,
    proofs: null,
    amount: decimalOf(money),
    asset: money.asset,
    usd: null,
    counterparty: sender,
    chain,
    lists: [...lists],
    status,
    createdAt: createdAt.toISOString(),
    decidedBy,
    decidedAt: decidedAt?.toISOString() ?? null,
    reason,
    releasedUntil: null,
    usedBy: null,
  }
}

function viewRecovery({ proofs, createdAt, decidedAt, ...review }: RecoveryReview) {
  return {
    ...review,
    proofs: [...proofs],
    agentId: null,
    decisionId: null,
    operation: 'recovery',
    direction: null,
    amount: null,
    asset: null,
    usd: null,
    counterparty: null,
    chain: null,
    lists: ['admin_lock'],
    createdAt: createdAt.toISOString(),
    decidedAt: decidedAt?.toISOString() ?? null,
    releasedUntil: null,
    usedBy: null,
  }
}
