import { z } from 'zod'
import { requirePerson } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { removeRecipient, requireRecipient } from '../../../src/rails/banking/recipients.ts'

export default defineTool({
  name: 'banking.recipients.remove',
  title: 'Delete a recipient',
  summary: 'Delete a saved bank account and erase its name, number and address; its payouts stay.',
  description: 'Payouts that are on their way go on. A deleted recipient cannot be paid again; save it anew.',
  route: 'DELETE /api/banking/recipients/{id}',
  who: 'person',
  effect: 'write',
  proof: 'none',
  stops: true,
  input: z.strictObject({ id: z.string().max(64).describe('`rcp_…`') }),
  output: z.strictObject({ deleted: z.boolean().describe('Always true.') }),
  failures: ['not_found', 'conflict'],
  example: { id: 'rcp_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const accountId = requirePerson(context).account.id
    await requireRecipient(context, { id, accountId })
    await removeRecipient(context.database, { id, accountId })
    await recordChange(context, { action: 'recipient.removed', object: { kind: 'recipient', id } })
    return { deleted: true }
  },
})
