import { z } from 'zod'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { recipientView, requireRecipient, viewRecipient } from '../../../src/rails/banking/recipients.ts'

export default defineTool({
  name: 'banking.recipients.get',
  title: 'Recipient',
  summary: 'Show one saved bank account.',
  description:
    'The number is shown by its last four characters only. 404 `not_found` for a recipient of another account.',
  route: 'GET /api/banking/recipients/{id}',
  who: 'person',
  effect: 'read',
  input: z.strictObject({ id: z.string().max(64).describe('`rcp_…`') }),
  output: recipientView,
  failures: ['not_found'],
  example: { id: 'rcp_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) =>
    viewRecipient(await requireRecipient(context, { id, accountId: requirePerson(context).account.id })),
})
