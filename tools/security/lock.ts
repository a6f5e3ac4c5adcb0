import { z } from 'zod'
import { lockAccount } from '../../src/identity/locks.ts'
import { destinationChannels } from '../../src/identity/login-destinations.ts'
import { countPasskeys } from '../../src/identity/passkeys.ts'
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
  output: z.strictObject({
    locked: z.boolean().describe('Always true.'),
    recovery: z
      .array(z.enum(['email', 'sms', 'passkey']))
      .describe('Ways back in, by POST /api/auth/recovery/start. None: only an administrator can unlock it.'),
  }),
  failures: [],
  example: {},
  run: async ({ database, principal, now: at }) => {
    const accountId = personOf({ principal }).account.id
    const locked = await lockAccount(database, { accountId, reason: 'person', at })
    const channels = await destinationChannels(database, accountId)
    const hasPasskey = (await countPasskeys(database, accountId)) > 0
    return { locked, recovery: [...channels, ...(hasPasskey ? (['passkey'] as const) : [])] }
  },
})
