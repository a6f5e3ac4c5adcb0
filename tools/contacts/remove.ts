import { z } from 'zod'
import { requirePerson } from '../../src/kernel/context.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { removeContact } from '../../src/records/contacts/store.ts'

export default defineTool({
  name: 'contacts.remove',
  title: 'Remove a contact',
  summary: 'Remove a contact and erase its name, addresses and e-mail address; payments to it stay.',
  description:
    'Approvals and schedules that named it are refused, and policies that name it neither allow nor deny anybody by it.',
  route: 'DELETE /api/contacts/{id}',
  who: 'person',
  effect: 'write',
  // A policy may deny it by its name.
  proof: 'step-up',
  stops: true,
  input: z.strictObject({ id: z.string().max(64).describe('`con_…`') }),
  output: z.strictObject({ deleted: z.boolean().describe('Always true.') }),
  failures: ['not_found'],
  example: { id: 'con_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const accountId = requirePerson(context).account.id
    await removeContact(context.database, { id, accountId, at: context.now })
    await recordChange(context, { action: 'contact.removed', object: { kind: 'contact', id } })
    return { deleted: true }
  },
})
