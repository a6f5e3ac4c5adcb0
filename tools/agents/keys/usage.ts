import { z } from 'zod'
import { storedPolicy } from '../../../policies/policy.ts'
import {
  pastUsage,
  readUsageBreakdown,
  showUsage,
  usageBreakdown,
  usageView,
} from '../../../src/books/spending/usage.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { agentKinds, developerKinds, findAnyKey } from '../../../src/people/identity/keys/owned-keys.ts'

export default defineTool({
  name: 'agents.keys.usage',
  title: 'Usage of a key',
  summary:
    'Read a key’s budget usage today, this week and this month, and on the previous 30 days, by category and payee, with its decisions.',
  description:
    'Reserved money counts as used until its outcome is known. `resetsAt` says when each window ends.',
  route: 'GET /api/agents/keys/{id}/usage',
  who: 'person',
  effect: 'read',
  input: z.strictObject({ id: z.string().max(64).describe('`agentId`: `key_…`') }),
  output: z.strictObject({
    agentId: z.string().describe('`key_…`'),
    usage: usageView.describe('Usage today, this week and this month (UTC).'),
    days: z
      .array(
        z.strictObject({
          day: z.string().describe('UTC calendar day, YYYY-MM-DD.'),
          used: z.string().describe('USD spent, as a decimal string.'),
          count: z.int().describe('Number of spends.'),
        }),
      )
      .describe('Days with spends, newest first.'),
    ...usageBreakdown,
  }),
  failures: ['not_found'],
  example: { id: 'key_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const { database, now } = context
    const kinds = [...agentKinds, ...developerKinds]
    const owned = { accountId: requirePerson(context).account.id, kinds }
    const key = await findAnyKey(database, { ...owned, id })
    if (key === undefined) throw new Failure('not_found', 'You have no such agent.')
    const policy = storedPolicy.nullable().parse(key.policy ?? null)
    return {
      agentId: key.id,
      usage: await showUsage(database, { keyId: key.id, policy }, now),
      days: await pastUsage(database, key.id, now),
      ...(await readUsageBreakdown(database, { accountId: owned.accountId, keyId: key.id }, now)),
    }
  },
})
