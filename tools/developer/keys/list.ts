import { z } from 'zod'
import { cutPage, nextCursor, pageMembers, toPage } from '../../../src/core/base/page.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { developerKeyView, viewDeveloperKey } from '../../../src/people/identity/keys/developer-key-view.ts'
import { developerKinds, keyStatusFilter, listKeys } from '../../../src/people/identity/keys/owned-keys.ts'

export default defineTool({
  name: 'developer.keys.list',
  title: 'API keys',
  summary:
    'List the account’s developer API keys, newest first, revoked ones by status; without their secrets.',
  description:
    'The secret was shown when the key was made and is stored as a hash only. Continue with `cursor`.',
  route: 'GET /api/developer/keys',
  who: 'person',
  effect: 'read',
  policies: 'response',
  input: z.strictObject({
    ...pageMembers,
    status: keyStatusFilter,
  }),
  output: z.strictObject({
    keys: z.array(developerKeyView).describe('API keys of this page, newest first.'),
    nextCursor,
  }),
  failures: [],
  example: {},
  run: async (context, { status, ...input }) => {
    const page = toPage(input)
    const owned = { accountId: requirePerson(context).account.id, kinds: developerKinds }
    const { rows, nextCursor } = cutPage(await listKeys(context.database, { ...owned, status, page }), page)
    return { keys: rows.map(viewDeveloperKey), nextCursor }
  },
})
