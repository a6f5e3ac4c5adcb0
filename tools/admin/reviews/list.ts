import { z } from 'zod'
import { usdOfMicros } from '../../../policies/usd.ts'
import { nextCursor, pageMembers, pageOf } from '../../../src/base/page.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { listReviews, REVIEW_RELEASE_MS } from '../../../src/spending/reviews.ts'

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
  title: 'AML reviews',
  summary: 'List the spends that AML has flagged for review.',
  description:
    'Each was denied with `aml_blocked` and `screening.result: review`. Excludes missing Travel Rule data, which the sender supplies, and names on a sanctions list, which GET /api/admin/travel-rules lists.',
  route: 'GET /api/admin/reviews',
  who: 'admin',
  scopes: [],
  effect: 'read',
  stepUp: true,
  mcp: false,
  input: z.strictObject({
    ...pageMembers,
    status: z.enum(statuses).optional().describe('Filter by status; `open` by default.'),
  }),
  output: z.strictObject({
    reviews: z
      .array(
        z.strictObject({
          id: z.string().describe('`rev_…`'),
          accountId: z.string().describe('`acct_…`: the sender.'),
          agentId: z.string().nullable().describe('`key_…`; null when a person sends.'),
          decisionId: z.string().describe('`dec_…`: denial that requires the review.'),
          operation: z.string().describe('The operation, such as `wallets.transfer`.'),
          direction: z.literal('out').describe('Direction of the spend: out of the account.'),
          amount: text.describe('Amount as a decimal string.'),
          asset: text.describe('Asset by symbol.'),
          usd: text.describe('Value in USD, as a decimal string.'),
          counterparty: text.describe('EVM address of the payee.'),
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
  run: async ({ database }, { status = 'open', ...input }) => {
    const { rows, nextCursor } = await listReviews(database, { status, page: pageOf(input) })
    const reviews = rows.map(({ facts, keyId, createdAt, decidedAt, lists, ...review }) => {
      const { usdMicros, ...shown } = shownFacts.parse(facts)
      const until =
        review.status === 'released' && decidedAt !== null ? decidedAt.getTime() + REVIEW_RELEASE_MS : null
      return {
        ...review,
        ...shown,
        agentId: keyId,
        direction: 'out' as const,
        usd: usdMicros === null ? null : usdOfMicros(BigInt(usdMicros)),
        lists: [...lists],
        createdAt: createdAt.toISOString(),
        decidedAt: decidedAt?.toISOString() ?? null,
        releasedUntil: until === null ? null : new Date(until).toISOString(),
      }
    })
    return { reviews, nextCursor }
  },
})
