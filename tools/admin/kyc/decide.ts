import { z } from 'zod'
import { adminNote } from '../../../src/kernel/admin-note.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { decideHit } from '../../../src/people/compliance/decide-kyc.ts'

export default defineTool({
  name: 'admin.kyc.decide',
  title: 'Decide on a sanctions hit',
  summary: 'Decide whether an applicant is the person on the sanctions list.',
  description:
    '`approve`: the applicant is a different person, and the application goes to the identity reviewer; erased data may be submitted again. `reject`: permanent, for every level. The decision is stored with its reason and administrator, and never changes.',
  route: 'POST /api/admin/kyc/{id}',
  who: 'admin',
  effect: 'write',
  proof: 'step-up',
  ownTransactions: true,
  input: z.strictObject({
    id: z.string().max(64).describe('`kyc_…`'),
    decision: z.enum(['approve', 'reject']).describe('`approve`: the applicant is a different person.'),
    reason: adminNote.describe('Reason, for the record.'),
  }),
  output: z.strictObject({
    id: z.string().describe('`kyc_…`'),
    status: z
      .enum(['init', 'pending', 'approved', 'retry', 'rejected'])
      .describe('Current status of the review.'),
  }),
  failures: ['not_found', 'conflict'],
  example: {
    id: 'kyc_01h455vb4pex5vsknk084sn02q',
    decision: 'approve',
    reason: 'Born forty years later than the one on the list.',
  },
  run: async (context, { id, decision: verdict, reason }) => {
    const decidedBy = requirePerson(context).account.id
    const decision = { id, decidedBy, verdict, reason, at: context.now }
    const action = verdict === 'approve' ? 'kyc.hit_cleared' : 'kyc.rejected'
    // The reason is omitted: it may contain personal data, and the journal is never erased.
    const { status } = await decideHit(context, decision, (transaction, decided) =>
      recordChange(context, { ...decided, as: 'admin', action, object: { kind: 'kyc', id } }, transaction),
    )
    return { id, status }
  },
})
