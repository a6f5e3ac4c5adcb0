import { z } from 'zod'
import { type CallerFacts, readCallerFacts } from '../src/books/spending/caller-facts.ts'
import { pathLimit, readPathLimits } from '../src/books/spending/path-limits.ts'
import { categoryUsageView, usageView, viewUsage } from '../src/books/spending/usage.ts'
import { requireCaller } from '../src/kernel/context.ts'
import { parsePolicy } from '../src/kernel/gates/policy.ts'
import { defineTool } from '../src/kernel/tool.ts'
import { signerView, viewEoa } from '../src/rails/wallets/signing/signer-view.ts'

export default defineTool({
  name: 'context',
  title: 'Caller and spending limits',
  summary: 'Read who you are here: scopes, spend policy, and what is left of the budgets, in USD.',
  description: 'Call this first, and again after `policy_denied`. It works while the key is paused.',
  restDescription: 'Assets other than USD count at the current rate.',
  route: 'GET /api/agents/self',
  who: 'account',
  scopes: [],
  role: 'accountant',
  effect: 'read',
  mcp: true,
  policies: 'response',
  input: z.strictObject({}),
  output: z.strictObject({
    principal: z.enum(['session', 'key']).describe('Kind of caller: a person’s session, or a key.'),
    accountId: z.string().describe('`acct_…`: account whose money is spent.'),
    agentId: z.string().nullable().describe('`key_…`; null for a person.'),
    keyId: z.string().nullable().describe('RFC 7638 thumbprint of an agent’s key.'),
    name: z.string().describe('Name of the key, or of the person.'),
    status: z
      .enum(['active', 'paused'])
      .describe('A `paused` key can only read, until its owner resumes it.'),
    scopes: z
      .array(z.string())
      .nullable()
      .describe('Scopes of the key; null for a person, who is not restricted by scopes.'),
    policy: z.looseObject({}).nullable().describe('Spend policy of the key; null for a person.'),
    path: z
      .array(z.string())
      .optional()
      .describe('`key_…` from the root to this key. Each judges and counts its spends.'),
    limits: z.array(pathLimit).optional().describe('What is left of each budget on the path.'),
    usage: usageView
      .extend({
        byCategory: z.array(categoryUsageView).describe('Today’s by category of the policy.'),
      })
      .nullable()
      .describe('Usage of the key today, this week and this month (UTC); null for a person.'),
    signers: z
      .array(signerView)
      .describe('The owner’s passkeys and EVM keys that sign for the wallet, newest first.'),
    now: z.string().describe('The time that budgets and schedules go by, ISO 8601 UTC.'),
  }),
  failures: [],
  run: async (context) => {
    const caller = requireCaller(context)
    const { database } = context
    const now = context.onCalendar(context.now)
    const accountId = caller.account.id
    const keyId = caller.kind === 'key' ? caller.key.id : null
    const facts = await readCallerFacts(database, { accountId, keyId }, now)
    const shared = { accountId, signers: facts.signers.map(viewSigner), now: now.toISOString() }
    if (caller.kind === 'session')
      return {
        ...shared,
        principal: 'session' as const,
        agentId: null,
        keyId: null,
        name: caller.account.displayName,
        status: 'active' as const,
        scopes: null,
        policy: null,
        usage: null,
      }
    const { key } = caller
    const policy = parsePolicy(key)
    return {
      ...shared,
      principal: 'key' as const,
      agentId: key.id,
      keyId: key.thumbprint,
      name: key.name,
      status: key.status === 'active' ? ('active' as const) : ('paused' as const),
      scopes: [...key.scopes],
      policy,
      usage: {
        ...viewUsage(facts.usage, policy, now),
        byCategory: [...facts.byCategory],
      },
      path: [...(key.delegation?.path.map(({ id }) => id) ?? []), key.id],
      limits: await readPathLimits(database, key, now),
    }
  },
})

/** Other agents sign for themselves and are not shown to each other. */
function viewSigner({ id, address, createdAt }: CallerFacts['signers'][number]): z.input<typeof signerView> {
  return address === null
    ? { id, type: 'passkey', createdAt: createdAt.toISOString() }
    : viewEoa({ id, address: `0x${address.slice(2)}`, createdAt })
}
