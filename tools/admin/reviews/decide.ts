import { z } from 'zod'
import { decideDepositReview } from '../../../src/banking/deposit-reviews.ts'
import { adminNote } from '../../../src/kernel/admin-note.ts'
import { personOf } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { latestOrDollars } from '../../../src/providers/rates.ts'
import { decideReview, REVIEW_RELEASE_MS } from '../../../src/spending/reviews.ts'
import { decideMovementReview, isStillThere } from '../../../src/wallets/reconcile/movement-reviews.ts'
import { recordMint } from '../../../src/wallets/reconcile/owed-mints.ts'

export default defineTool({
  name: 'admin.reviews.decide',
  title: 'Decide on an AML review',
  summary: 'Release or block a spend or a deposit that AML has flagged for review.',
  description:
    '`release`: exactly that spend passes once when it is sent again within 24 hours, subject to the policy, budget and balance at that time; a sanctions list still blocks it, and rules that did not require this review still apply. A released deposit is credited at once, at the rate of that moment. `block`: exactly that spend is blocked permanently, or the deposit never credited. The decision is stored with its reason and administrator, and never changes.',
  route: 'POST /api/admin/reviews/{id}',
  who: 'admin',
  scopes: [],
  effect: 'write',
  ownTransactions: true,
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
      .describe('Deadline for sending the spend again, ISO 8601 UTC; null when blocked, and for a deposit.'),
  }),
  failures: ['not_found', 'conflict', 'rates_unavailable', 'chain_not_supported', 'provider_unavailable'],
  example: {
    id: 'rev_01h455vb4pex5vsknk084sn02q',
    decision: 'release',
    reason: 'The invoice was shown, and the payee is a known supplier.',
  },
  run: async (context, { id, decision, reason }) => {
    const at = context.now
    const decidedBy = personOf(context).account.id
    const status = decision === 'release' ? ('released' as const) : ('blocked' as const)
    const decided = { id, decidedBy, status, reason, at }
    const table = await latestOrDollars(context.rates, at)
    const isThere = await isStillThere(context, decided)
    const isDeposit = await context.database.transaction(async (database) => {
      const parts = { ...context, database }
      const isBanks =
        isThere === undefined &&
        (await decideDepositReview({ ...parts, oweMint: recordMint(context) }, { ...decided, table }))
      if (isThere !== undefined) await decideMovementReview(parts, { ...decided, isThere })
      else if (!isBanks) await decideReview(parts, decided)
      const change = {
        as: 'admin',
        action: `review.${status}`,
        object: { kind: 'review', id },
      } as const
      await recordChange(context, change, database)
      return isBanks || isThere !== undefined
    })
    const until = new Date(at.getTime() + REVIEW_RELEASE_MS).toISOString()
    return { id, status, releasedUntil: decision === 'release' && !isDeposit ? until : null }
  },
})
