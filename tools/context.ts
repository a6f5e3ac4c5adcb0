import { z } from 'zod'
import { callerOf } from '../src/kernel/context.ts'
import { policyOf } from '../src/kernel/gates/policy.ts'
import { defineTool } from '../src/kernel/tool.ts'
import { showUsage, usageView } from '../src/spending/usage.ts'

export default defineTool({
  name: 'context',
  title: 'Caller and spending limits',
  summary: 'Read who you are here: scopes, spend policy, and what is left of today’s budget.',
  description:
    'Call this first, and again after `policy_denied`. Free, and it works while the key is paused. Amounts are USD decimal strings; other assets count at the current rate.',
  route: 'GET /api/agents/self',
  who: 'account',
  scopes: [],
  effect: 'read',
  mcp: true,
  input: z.strictObject({}),
  output: z.strictObject({
    principal: z.enum(['session', 'key']).describe('Kind of caller: a person’s session, or a key.'),
    accountId: z.string().describe('`acct_…`: account whose money is spent.'),
    agentId: z.string().nullable().describe('`key_…`; null for a person.'),
    keyId: z.string().nullable().describe('RFC 7638 thumbprint of an agent’s key.'),
    name: z.string().describe('Name of the key, or of the person.'),
    status: z.string().describe('`active`, or `paused` by the owner.'),
    scopes: z
      .array(z.string())
      .nullable()
      .describe('Scopes of the key; null for a person, who is not restricted by scopes.'),
    policy: z.looseObject({}).nullable().describe('Spend policy of the key; null for a person.'),
    usage: usageView.nullable().describe('Usage of the key today (UTC); null for a person.'),
    now: z.string().describe('The gateway’s clock, ISO 8601 UTC.'),
  }),
  failures: [],
  run: async (context) => {
    const caller = callerOf(context)
    const shared = { accountId: caller.account.id, now: context.now.toISOString() }
    if (caller.kind === 'session')
      return {
        ...shared,
        principal: 'session' as const,
        agentId: null,
        keyId: null,
        name: caller.account.displayName,
        status: 'active',
        scopes: null,
        policy: null,
        usage: null,
      }
    const { key } = caller
    const policy = policyOf(key)
    return {
      ...shared,
      principal: 'key' as const,
      agentId: key.id,
      keyId: key.thumbprint,
      name: key.name,
      status: key.status,
      scopes: [...key.scopes],
      policy,
      usage: await showUsage(context.database, { keyId: key.id, policy }, context.now),
    }
  },
})
