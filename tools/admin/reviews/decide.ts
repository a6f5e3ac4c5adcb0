import { z } from 'zod'
import { adminNote } from '../../../src/kernel/admin-note.ts'
import { personOf } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { decideReview, REVIEW_RELEASE_MS } from '../../../src/spending/reviews.ts'

export default defineTool({
  name: 'admin.reviews.decide',
  title: 'Decide on an AML review',
  summary: 'Release or block a spend that AML has flagged for review.',
  description:
    '`release`: exactly that spend passes once when it is sent again within 24 hours, subject to the policy, budget and balance at that time; a sanctions list still blocks it, and rules that did not require this review still apply. `block`: exactly that spend is blocked permanently. The decision is stored with its reason and administrator, and never changes.',
  route: 'POST /api/admin/reviews/{id}',
  who: 'admin',
  scopes: [],
  effect: 'write',
  stepUp: true,
  mcp: false,
  input: z.strictObject({
    id: z.string().max(64).describe('`rev_…`'),
    decision: z.enum(['release', 'block']).describe('`release`: the spend may be sent again.'),
    reason: adminNote.describe('Reason, for the record.'),
  }),
  output: z.strictObject({
    id: z.string().describe('`rev_…`'),
    status: z.enum(['released', 'blocked']).describe('Decision on the review.'),
    releasedUntil: z
      .string()
      .nullable()
      .describe('Deadline for sending the spend again, ISO 8601 UTC; null when blocked.'),
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
