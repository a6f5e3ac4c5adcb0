import { z } from 'zod'
import { agentView, viewAgent } from '../../../src/books/spending/agent-view.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { findAnyKey, ownedKinds } from '../../../src/people/identity/keys/owned-keys.ts'

export default defineTool({
  name: 'agents.keys.get',
  title: 'Agent',
  summary: 'Read one of the account’s agents, revoked or not, with its policy and today’s usage.',
  description: '404 `not_found` for every id that is not of this account.',
  route: 'GET /api/agents/keys/{id}',
  who: 'person',
  effect: 'read',
  policies: 'response',
  input: z.strictObject({ id: z.string().max(64).describe('`agentId`: `key_…`') }),
  output: agentView,
  failures: ['not_found'],
  example: { id: 'key_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const owned = { accountId: requirePerson(context).account.id, kinds: ownedKinds }
    const key = await findAnyKey(context.database, { ...owned, id })
    if (key === undefined) throw new Failure('not_found', 'You have no such agent.')
    return viewAgent(context.database, key, context.onCalendar(context.now))
  },
})
