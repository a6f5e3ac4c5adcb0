import { z } from 'zod'
import { usdOfMicros } from '../../../policies/usd.ts'
import { nextCursor, pageMembers, pageOf } from '../../../src/base/page.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { listReviews, REVIEW_RELEASE_MS } from '../../../src/spending/reviews.ts'

const statuses = ['open', 'released', 'blocked'] as const
const text = z.string().nullable().catch(null)

/** The part of a decision's facts that a person judges by. */
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
  summary: 'List the spends that AML wants a person to look at.',
  description:
    'Each was denied with `aml_blocked` and `screening.result: review`. Travel Rule data that is missing and names on a sanctions list are not here: the sender supplies the former, and GET /api/admin/travel-rules lists the latter.',
  route: 'GET /api/admin/reviews',
  who: 'admin',
  scopes: [],
  effect: 'read',
  stepUp: true,
  mcp: false,
  input: z.strictObject({
    ...pageMembers,
    status: z.enum(statuses).optional().describe('Only with this status; `open` by default.'),
  }),
  output: z.strictObject({
    reviews: z
      .array(
        z.strictObject({
          id: z.string().describe('`rev_…`'),
          accountId: z.string().describe('`acct_…`: the sender.'),
          agentId: z.string().nullable().describe('`key_…`; null where a person sends.'),
          decisionId: z.string().describe('`dec_…`: the denial that asks for the review.'),
          operation: z.string().describe('The operation, such as `wallets.transfer`.'),
          direction: z.literal('out').describe('The money would leave the account.'),
          amount: text.describe('Amount as a decimal string.'),
          asset: text.describe('Asset by symbol.'),
          usd: text.describe('Its worth in USD, as a decimal string.'),
          counterparty: text.describe('EVM address of the payee.'),
          chain: text.describe('Chain by name.'),
          lists: z.array(z.string()).describe('Lists and rules that want the review.'),
          status: z.enum(statuses).describe('`open`: nobody has decided.'),
          createdAt: z.string().describe('When it was asked for, ISO 8601 UTC.'),
          decidedBy: text.describe('`acct_…`: the administrator who decided; null while open.'),
          decidedAt: text.describe('When they did, ISO 8601 UTC; null while open.'),
          reason: text.describe('Why; null while open.'),
          releasedUntil: text.describe('Until when the released spend may be sent again; null otherwise.'),
          usedBy: text.describe('`dec_…`: the decision that the release let pass; null: none yet.'),
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
