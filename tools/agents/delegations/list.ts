import { z } from 'zod'
import { delegationView, viewDelegation } from '../../../src/books/spending/delegation-view.ts'
import { cutPage, nextCursor, pageMembers, toPage } from '../../../src/core/base/page.ts'
import { requireCaller } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { listDelegations } from '../../../src/people/identity/keys/delegations.ts'
import { keyStatusFilter } from '../../../src/people/identity/keys/owned-keys.ts'

export default defineTool({
  name: 'agents.delegations.list',
  title: 'Delegated keys',
  summary: 'List the keys below your own with what each has used, newest first; revoked ones only by status.',
  description: 'With `parentId`, only the children of that key. Continue with `cursor`.',
  route: 'GET /api/agents/delegations',
  who: 'account',
  scopes: ['agents:delegate'],
  effect: 'read',
  mcp: true,
  policies: 'response',
  input: z.strictObject({
    ...pageMembers,
    parentId: z.string().max(64).optional().describe('`key_…`: only its own children.'),
    status: keyStatusFilter,
  }),
  output: z.strictObject({
    delegations: z.array(delegationView).describe('Keys of this page, newest first.'),
    nextCursor,
  }),
  failures: [],
  example: {},
  run: async (context, { parentId, status, ...input }) => {
    const { database, now } = context
    const caller = requireCaller(context)
    const page = toPage(input)
    const below = caller.kind === 'key' ? caller.key.id : null
    const found = await listDelegations(database, {
      accountId: caller.account.id,
      below,
      parentId,
      status,
      page,
      now,
    })
    const { rows, nextCursor } = cutPage(found, page)
    return {
      delegations: await Promise.all(rows.map((key) => viewDelegation(database, key, now))),
      nextCursor,
    }
  },
})
