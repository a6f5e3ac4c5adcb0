import { z } from 'zod'
import { toJson } from '../../src/core/base/json.ts'
import { requirePerson } from '../../src/kernel/context.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { requireRecipient } from '../../src/rails/banking/recipients.ts'
import { contactMembers, normalizeAddresses } from '../../src/records/contacts/members.ts'
import { insertContact } from '../../src/records/contacts/store.ts'
import { contactView, viewContacts } from '../../src/records/contacts/view.ts'

export default defineTool({
  name: 'contacts.create',
  title: 'Add a contact',
  summary: 'Give a payee a name, under which the owner and the agents pay it.',
  description:
    'Payments name it as `contact:NAME`, and so do the `counterparties` of policies. `conflict`: another contact has the name, or one that looks like it.',
  route: 'POST /api/contacts',
  who: 'person',
  effect: 'write',
  proof: 'step-up',
  // Personal data is stored sealed in one place only, and not with the idempotent answers.
  shownOnce: ['name', 'email'],
  input: z.strictObject(contactMembers),
  output: contactView,
  failures: ['not_found', 'conflict', 'chain_not_supported'],
  example: { name: 'Alice', addresses: [{ address: '0x000000000000000000000000000000000000dEaD' }] },
  run: async (context, { name, addresses = [], recipientId = null, email = null }) => {
    const { account, person } = requirePerson(context)
    const accountId = account.id
    if (recipientId !== null) await requireRecipient(context, { id: recipientId, accountId })
    const contact = await insertContact(context, {
      id: context.newId('con', context.now),
      accountId,
      addedBy: person.id,
      name,
      email,
      recipientId,
      addresses: normalizeAddresses(context.chains, addresses),
      at: context.now,
    })
    await recordChange(context, {
      action: 'contact.created',
      object: { kind: 'contact', id: contact.id },
      after: toJson({ addresses: contact.addresses, recipientId }),
    })
    const [view] = await viewContacts(context, [contact], { accountId, isOwner: true })
    if (view === undefined) throw new Error(`${contact.id} has no view`)
    return view
  },
})
