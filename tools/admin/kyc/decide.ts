import { z } from 'zod'
import { decideOnHit } from '../../../src/compliance/decide-kyc.ts'
import { personOf } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'

export default defineTool({
  name: 'admin.kyc.decide',
  title: 'Decide on a sanctions hit',
  summary: 'Decide whether somebody who applied is the one on the sanctions list.',
  description:
    '`approve`: it is somebody else, and the identity goes to the reviewer, who decides on the rest; what its person has erased they may say again. `reject`: for good, whatever level they apply for. The decision is kept with its reason and who took it, and never changes.',
  route: 'POST /api/admin/kyc/{id}',
  who: 'admin',
  scopes: [],
  effect: 'write',
  ownTransactions: true,
  stepUp: true,
  mcp: false,
  input: z.strictObject({
    id: z.string().max(64).describe('`kyc_…`'),
    decision: z.enum(['approve', 'reject']).describe('`approve`: it is somebody else.'),
    reason: z
      .string()
      .trim()
      .min(1)
      .max(500)
      .regex(/^\P{Cc}*$/u, 'must not hold control characters')
      .describe('Why, for those who look at it later.'),
  }),
  output: z.strictObject({
    id: z.string().describe('`kyc_…`'),
    status: z
      .enum(['init', 'pending', 'approved', 'retry', 'rejected'])
      .describe('Where the review stands now.'),
  }),
  failures: ['not_found', 'conflict'],
  example: {
    id: 'kyc_01h455vb4pex5vsknk084sn02q',
    decision: 'approve',
    reason: 'Born forty years later than the one on the list.',
  },
  run: async (context, { id, decision: verdict, reason }) => {
    const decidedBy = personOf(context).account.id
    const decision = { id, decidedBy, verdict, reason, at: context.now }
    const action = verdict === 'approve' ? 'kyc.hit_cleared' : 'kyc.rejected'
    // Without the reason: it may tell of the person, and what the journal holds is never erased.
    const { status } = await decideOnHit(context, decision, (transaction, decided) =>
      recordChange(context, { ...decided, as: 'admin', action, object: { kind: 'kyc', id } }, transaction),
    )
    return { id, status }
  },
})
