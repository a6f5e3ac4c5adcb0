import { z } from 'zod'
import { lockAccount } from '../../src/identity/locks.ts'
import { personOf } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'

export default defineTool({
  name: 'security.lock',
  title: 'Lock the account',
  summary: 'Lock the account at once: no session, key or agent of it works until it is recovered.',
  route: 'POST /api/security/lock',
  who: 'person',
  scopes: [],
  effect: 'write',
  mcp: false,
  input: z.strictObject({}),
  output: z.strictObject({ locked: z.boolean().describe('Always true.') }),
  failures: [],
  example: {},
  run: async (context) => ({
    locked: await lockAccount(context.database, {
      accountId: personOf(context).account.id,
      reason: 'person',
      at: context.now,
    }),
  }),
})
