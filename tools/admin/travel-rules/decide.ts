import { z } from 'zod'
import { adminNote } from '../../../src/kernel/admin-note.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { decideListedData } from '../../../src/people/compliance/listed-parties.ts'

export default defineTool({
  name: 'admin.travel_rules.decide',
  title: 'Decide on a listed name in Travel Rule data',
  summary: 'Decide whether a name in Travel Rule data is the one on the sanctions list.',
  description:
    '`approve`: it is a different party; the account may pay the destination again and submit the same names for it. `reject`: the account can never pay the destination. The decision is stored with its reason and administrator, and never changes.',
  route: 'POST /api/admin/travel-rules/{id}',
  who: 'admin',
  effect: 'write',
  proof: 'step-up',
  input: z.strictObject({
    id: z.string().max(64).describe('`tr_…`'),
    decision: z.enum(['approve', 'reject']).describe('`approve`: it is a different party.'),
    reason: adminNote.describe('Reason, for the record.'),
  }),
  output: z.strictObject({
    id: z.string().describe('`tr_…`'),
    decision: z.enum(['approve', 'reject']).describe('Decision on the data.'),
  }),
  failures: ['not_found', 'conflict'],
  example: {
    id: 'tr_01h455vb4pex5vsknk084sn02q',
    decision: 'approve',
    reason: 'A shop of the same name, in another country.',
  },
  run: async (context, { id, decision, reason }) => {
    const decidedBy = requirePerson(context).account.id
    await decideListedData(context, { id, decidedBy, verdict: decision, reason, at: context.now })
    await recordChange(context, {
      as: 'admin',
      action: `travel_rule.${decision}`,
      object: { kind: 'travel_rule', id },
    })
    return { id, decision }
  },
})
