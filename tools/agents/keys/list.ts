import { z } from 'zod'
import { agentView, viewAgent } from '../../../src/books/spending/agent-view.ts'
import { cutPage, nextCursor, pageMembers, toPage } from '../../../src/core/base/page.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import {
  agentKinds,
  keyStatusFilter,
  listKeys,
  ownedKinds,
} from '../../../src/people/identity/keys/owned-keys.ts'

export default defineTool({
  name: 'agents.keys.list',
  title: 'Agents',
  summary:
    'List the account’s agents, newest first, with their policies and today’s usage; revoked ones only by status.',
  description:
    'Grants of MCP clients are agents too. `include: api_keys` adds API keys, which spend under a policy as well. Continue with `cursor`.',
  route: 'GET /api/agents/keys',
  who: 'person',
  effect: 'read',
  policies: 'response',
  input: z.strictObject({
    ...pageMembers,
    status: keyStatusFilter,
    include: z
      .literal('api_keys')
      .optional()
      .describe('`api_keys`: list API keys beside agents, since they spend under a policy too.'),
  }),
  output: z.strictObject({
    keys: z.array(agentView).describe('Agents of this page, newest first.'),
    nextCursor,
  }),
  failures: [],
  example: {},
  run: async (context, { status, include, ...input }) => {
    const { database, now } = context
    const page = toPage(input)
    const owned = {
      accountId: requirePerson(context).account.id,
      kinds: include === undefined ? agentKinds : ownedKinds,
    }
    const { rows, nextCursor } = cutPage(await listKeys(database, { ...owned, status, page }), page)
    return {
      keys: await Promise.all(rows.map((key) => viewAgent(database, key, context.onCalendar(now)))),
      nextCursor,
    }
  },
})
