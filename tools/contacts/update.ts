import { z } from 'zod'
import { restartCooldowns } from '../../src/books/spending/restart-cooldowns.ts'
import { toJson } from '../../src/core/base/json.ts'
import { requirePerson } from '../../src/kernel/context.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { requireRecipient } from '../../src/rails/banking/recipients.ts'
import { contactMembers, normalizeAddresses } from '../../src/records/contacts/members.ts'
import { listPayees } from '../../src/records/contacts/payee.ts'
import { findContact, noSuchContact, updateContact } from '../../src/records/contacts/store.ts'
import { contactView, viewContacts } from '../../src/records/contacts/view.ts'

const request = z
  .strictObject({
    id: z.string().max(64).describe('`con_…`'),
    ...contactMembers,
    name: contactMembers.name.optional(),
  })
  .refine((input) => Object.keys(input).length > 1, 'must name a member to change')

const isOther = (before: unknown, after: unknown) => JSON.stringify(before) !== JSON.stringify(after)

export default defineTool({
  name: 'contacts.update',
  title: 'Change a contact',
  summary: 'Change the name, the addresses, the bank account or the e-mail address of a contact.',
  description:
    'Absent members stay; `addresses` replaces all. Another address or bank account starts the cool-down of new payees in every policy that has one. An approval or a schedule that named it pays what it showed, or nobody: once that is changed, it is refused.',
  route: 'PATCH /api/contacts/{id}',
  who: 'person',
  effect: 'write',
  // Policies and payments name it: another name or address is another payee.
  proof: 'step-up',
  shownOnce: ['name', 'email'],
  input: request,
  output: contactView,
  failures: ['not_found', 'conflict', 'chain_not_supported'],
  example: { id: 'con_01h455vb4pex5vsknk084sn02q', email: 'alice@example.com' },
  run: async (context, { id, addresses, ...said }) => {
    const { database, chains, now: at } = context
    const accountId = requirePerson(context).account.id
    const found = await findContact(context, { id, accountId, isLocked: true })
    if (found === undefined) throw noSuchContact()
    const { name = found.name, recipientId = found.recipientId, email = found.email } = said
    const after = {
      id,
      name,
      addresses: addresses === undefined ? found.addresses : normalizeAddresses(chains, addresses),
      recipientId,
    }
    if (recipientId !== null && recipientId !== found.recipientId)
      await requireRecipient(context, { id: recipientId, accountId })
    const known = new Set(listPayees(found).map((payee) => payee.toLowerCase()))
    const added = listPayees(after).filter((payee) => !known.has(payee.toLowerCase()))
    const isReaddressed = isOther([found.addresses, found.recipientId], [after.addresses, after.recipientId])
    const contact = await updateContact(context, { ...after, accountId, email, isReaddressed, at })
    await restartCooldowns(database, { accountId, payees: added, at: context.onCalendar(at) })
    await recordChange(context, {
      action: 'contact.updated',
      object: { kind: 'contact', id },
      before: toJson({ addresses: found.addresses, recipientId: found.recipientId }),
      after: toJson({ addresses: contact.addresses, recipientId, isRenamed: name !== found.name }),
    })
    const [view] = await viewContacts(context, [contact], { accountId, isOwner: true })
    if (view === undefined) throw new Error(`${id} has no view`)
    return view
  },
})
