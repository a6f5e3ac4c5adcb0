import { z } from 'zod'
import { requirePerson } from '../../src/kernel/context.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { changeDisplayName, displayNameInput } from '../../src/people/identity/display-name.ts'
import { accountView, viewAccount } from '../../src/people/identity/sessions/session-answer.ts'

export default defineTool({
  name: 'auth.profile',
  title: 'Display name',
  summary: 'Change the display name of the signed-in person.',
  description: 'Cards that were issued keep their holder’s name; a verified identity stays.',
  route: 'PATCH /api/auth/profile',
  who: 'person',
  // Every person looks after their own access.
  role: 'accountant',
  effect: 'write',
  proof: 'loosening',
  loosens: { displayName: 'never' },
  input: z.strictObject({
    displayName: displayNameInput.describe('New display name, 1 to 80 characters.'),
  }),
  output: z.strictObject({ account: accountView.describe('The account, as it is now.') }),
  failures: [],
  example: { displayName: 'Ada Lovelace' },
  run: async (context, { displayName }) => {
    const { account, person } = requirePerson(context)
    await changeDisplayName(context.database, { accountId: person.id, displayName })
    await recordChange(context, { action: 'account.renamed', object: { kind: 'account', id: person.id } })
    return { account: viewAccount({ ...account, displayName }) }
  },
})
