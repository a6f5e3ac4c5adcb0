import { z } from 'zod'
import { personOf } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { decideReview, REVIEW_RELEASE_MS } from '../../../src/spending/reviews.ts'

export default defineTool({
  name: 'admin.reviews.decide',
  title: 'Decide on an AML review',
  summary: 'Release or block a spend that AML wants a person to look at.',
  description:
    '`release`: exactly that spend passes once when it is sent again within 24 hours, under the policy, budget and balance of that moment; a sanctions list still blocks it, and rules that did not ask for this review still hold. `block`: exactly that spend is blocked for good. The decision is kept with its reason and who took it, and never changes.',
  route: 'POST /api/admin/reviews/{id}',
  who: 'admin',
  scopes: [],
  effect: 'write',
  stepUp: true,
  mcp: false,
  input: z.strictObject({
    id: z.string().max(64).describe('`rev_…`'),
    decision: z.enum(['release', 'block']).describe('`release`: the spend may be sent again.'),
    reason: z
      .string()
      .trim()
      .min(1)
      .max(500)
      .regex(/^\P{Cc}*$/u, 'must not hold control characters')
      .describe('Why, for those who look at it later.'),
  }),
  output: z.strictObject({
    id: z.string().describe('`rev_…`'),
    status: z.enum(['released', 'blocked']).describe('The decision.'),
    releasedUntil: z
      .string()
      .nullable()
      .describe('Until when the spend may be sent again, ISO 8601 UTC; null where it is blocked.'),
  }),
  failures: ['not_found', 'conflict'],
  example: {
    id: 'rev_01h455vb4pex5vsknk084sn02q',
    decision: 'release',
    reason: 'The invoice was shown, and the payee is a known supplier.',
  },
  run: async (context, { id, decision, reason }) => {
    const at = context.now
    const decidedBy = personOf(context).account.id
    const status = decision === 'release' ? ('released' as const) : ('blocked' as const)
    await decideReview(context, { id, decidedBy, status, reason, at })
    await recordChange(context, { as: 'admin', action: `review.${status}`, object: { kind: 'review', id } })
    const until = new Date(at.getTime() + REVIEW_RELEASE_MS).toISOString()
    return { id, status, releasedUntil: decision === 'release' ? until : null }
  },
})
