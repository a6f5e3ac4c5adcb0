import { z } from 'zod'
import { readContactName } from '../../policies/contact-names.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { findContactsByName, listContacts } from '../../src/records/contacts/store.ts'
import { contactView, viewContacts } from '../../src/records/contacts/view.ts'

export default defineTool({
  name: 'contacts.list',
  title: 'Contacts',
  summary: 'List the payees that the owner has named.',
  description: 'Use it to pay by name: `contact:NAME`.',
  restDescription: 'Oldest first; an account has at most 200. Only the owner adds or changes one.',
  route: 'GET /api/contacts',
  who: 'account',
  scopes: ['wallets:read'],
  effect: 'read',
  mcp: true,
  restOnly: ['name'],
  input: z.strictObject({
    name: z.string().min(1).max(120).optional().describe('Only the one of this name.'),
  }),
  output: z.strictObject({ contacts: z.array(contactView).describe('Contacts.') }),
  failures: [],
  example: {},
  run: async (context, { name }) => {
    const caller = requireCaller(context)
    const accountId = caller.account.id
    const contacts =
      name === undefined
        ? await listContacts(context, accountId)
        : await findContactsByName(context, { accountId, names: [readContactName(name) ?? name] })
    return {
      contacts: await viewContacts(context, contacts, { accountId, isOwner: caller.kind === 'session' }),
    }
  },
})
