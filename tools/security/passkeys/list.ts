import { z } from 'zod'
import { cutPage, nextCursor, pageMembers, toPage } from '../../../src/core/base/page.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { findPasskeys } from '../../../src/people/identity/passkeys/passkey-store.ts'
import { passkeyView, viewPasskey } from '../../../src/people/identity/passkeys/passkey-view.ts'

export default defineTool({
  name: 'security.passkeys.list',
  title: 'Passkeys',
  summary: 'List the passkeys that sign this account in, newest first.',
  description:
    'Continue with `cursor`. DELETE /api/security/passkeys/{id} removes one, but not the one that owns the wallet.',
  route: 'GET /api/security/passkeys',
  who: 'person',
  // Every person looks after their own access.
  role: 'accountant',
  effect: 'read',
  input: z.strictObject(pageMembers),
  output: z.strictObject({
    passkeys: z.array(passkeyView).describe('Passkeys of this page, newest first.'),
    nextCursor,
  }),
  failures: [],
  example: { limit: 50 },
  run: async (context, input) => {
    const page = toPage(input)
    const accountId = requirePerson(context).person.id
    const { rows, nextCursor } = cutPage(await findPasskeys(context.database, { accountId, page }), page)
    return { passkeys: rows.map(viewPasskey), nextCursor }
  },
})
