import { z } from 'zod'
import { requirePerson } from '../../src/kernel/context.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { destinationChannels } from '../../src/people/identity/codes/login-destinations.ts'
import { lockAccount, lockPerson } from '../../src/people/identity/locks.ts'
import { countPasskeys } from '../../src/people/identity/passkeys/passkeys.ts'
import { cancelStoppedOrders } from '../../src/rails/investing/stopped-orders.ts'

export default defineTool({
  name: 'security.lock',
  title: 'Lock the account',
  summary:
    'Lock the account at once: its sessions, keys and agents stop working until it is recovered. Open orders are canceled and pending approvals rejected.',
  description:
    'Use it when a device or a key is lost: it needs no second factor. Recovery (POST /api/auth/recovery/start) opens the account again.',
  route: 'POST /api/security/lock',
  who: 'person',
  // Every person looks after their own access.
  role: 'accountant',
  effect: 'write',
  proof: 'none',
  stops: true,
  input: z.strictObject({}),
  output: z.strictObject({
    locked: z.boolean().describe('Always true.'),
    recovery: z
      .array(z.enum(['email', 'sms', 'passkey', 'guest']))
      .describe(
        'Recovery options: `channel` of POST /api/auth/recovery/start. `guest` takes the account id as destination. Empty: only an administrator can unlock the account.',
      ),
  }),
  failures: [],
  example: {},
  run: async (context) => {
    const { database, settings, now: at } = context
    const { account, person } = requirePerson(context)
    const [accountId, personId] = [account.id, person.id]
    // What an owner locks is the account; somebody else only their own access to it.
    const isOwner = person.role === 'owner'
    if (isOwner) await lockAccount(database, { accountId, reason: 'person', at })
    const locked = await lockPerson(database, { personId, reason: 'person', at })
    if (isOwner) context.afterCommit((database) => cancelStoppedOrders({ ...context, database }, accountId))
    const channels = await destinationChannels(database, personId)
    const hasPasskey = (await countPasskeys(database, personId)) > 0
    await recordChange(context, {
      action: 'account.locked',
      object: { kind: 'account', id: isOwner ? accountId : personId },
      after: { reason: 'person' },
    })
    const recovery = [...channels, ...(hasPasskey ? (['passkey'] as const) : [])]
    const isStuck = recovery.length === 0 && account.guest && settings.mode === 'sandbox'
    return { locked, recovery: isStuck ? ['guest' as const] : recovery }
  },
})
