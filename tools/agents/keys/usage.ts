import { z } from 'zod'
import { spendPolicy } from '../../../policies/policy.ts'
import { Failure } from '../../../src/failures/failure.ts'
import { agentKinds, developerKinds, findAnyKey } from '../../../src/identity/keys/owned-keys.ts'
import { personOf } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { pastUsage, showUsage, usageView } from '../../../src/spending/usage.ts'

export default defineTool({
  name: 'agents.keys.usage',
  title: 'Usage of a key',
  summary: 'Read what a key used of its budget today, and on the 30 days before.',
  route: 'GET /api/agents/keys/{id}/usage',
  who: 'person',
  scopes: [],
  effect: 'read',
  mcp: false,
  input: z.strictObject({ id: z.string().max(64).describe('`agentId`: `key_…`') }),
  output: z.strictObject({
    agentId: z.string().describe('`key_…`'),
    usage: usageView.describe('Today.'),
    days: z
      .array(
        z.strictObject({
          day: z.string().describe('UTC calendar day, YYYY-MM-DD.'),
          used: z.string().describe('USD spent, as a decimal string.'),
          count: z.int().describe('Spends.'),
        }),
      )
      .describe('Days with spends, newest first.'),
  }),
  failures: ['not_found'],
  example: { id: 'key_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const { database, now } = context
    const kinds = [...agentKinds, ...developerKinds]
    const owned = { accountId: personOf(context).account.id, kinds }
    const key = await findAnyKey(database, { ...owned, id })
    if (key === undefined) throw new Failure('not_found', 'There is no such agent of yours.')
    const policy = spendPolicy.nullable().parse(key.policy ?? null)
    return {
      agentId: key.id,
      usage: await showUsage(database, { keyId: key.id, policy }, now),
      days: await pastUsage(database, key.id, now),
    }
  },
})
