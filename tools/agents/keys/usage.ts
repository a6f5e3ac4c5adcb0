import { z } from 'zod'
import { storedPolicy } from '../../../policies/policy.ts'
import { pathLimit, readPathLimits } from '../../../src/books/spending/path-limits.ts'
import {
  pastUsage,
  readUsageBreakdown,
  readUsageByChild,
  readUsageByTask,
  showUsage,
  spent,
  usageBreakdown,
  usageView,
} from '../../../src/books/spending/usage.ts'
import { untrustedText } from '../../../src/core/base/untrusted-text.ts'
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
  input: z.strictObject({
    id: z.string().max(64).describe('`agentId`: `key_…`'),
    by: z
      .enum(['task', 'child'])
      .optional()
      .describe('Adds `tasks`, of the last 30 days, or `children`, since they began.'),
  }),
  output: z.strictObject({
    agentId: z.string().describe('`key_…`'),
    usage: usageView.describe('Usage today, this week and this month (UTC).'),
    limits: z
      .array(pathLimit)
      .optional()
      .describe('Of a delegated key: what is left of each budget on its path.'),
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
    tasks: z
      .array(z.strictObject({ task: untrustedText('Label of the task.'), ...spent }))
      .optional()
      .describe('What the key and those below it spent for each task, the most first.'),
    children: z
      .array(z.strictObject({ agentId: z.string().describe('`key_…`'), ...spent }))
      .optional()
      .describe('What each key that it delegated to has spent, with those below it.'),
  }),
  failures: ['not_found'],
  example: { id: 'key_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id, by }) => {
    const { database } = context
    const now = context.onCalendar(context.now)
    const kinds = [...agentKinds, ...developerKinds]
    const owned = { accountId: requirePerson(context).account.id, kinds }
    const key = await findAnyKey(database, { ...owned, id })
    if (key === undefined) throw new Failure('not_found', 'You have no such agent.')
    const policy = storedPolicy.nullable().parse(key.policy ?? null)
    return {
      agentId: key.id,
      usage: await showUsage(database, { keyId: key.id, policy }, now),
      ...(key.delegation !== undefined && { limits: await readPathLimits(database, key, now) }),
      days: await pastUsage(database, key.id, now),
      ...(await readUsageBreakdown(database, { accountId: owned.accountId, keyId: key.id }, now)),
      ...(by === 'task' && {
        tasks: await readUsageByTask(database, { accountId: owned.accountId, keyId: key.id }, now),
      }),
      ...(by === 'child' && {
        children: await readUsageByChild(database, { accountId: owned.accountId, keyId: key.id }),
      }),
    }
  },
})
