import { z } from 'zod'
import { requirePerson } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { createApiKey } from '../../../src/people/identity/keys/api-keys.ts'
import { developerKeyView, viewDeveloperKey } from '../../../src/people/identity/keys/developer-key-view.ts'
import { grantMembers, keyExpiry, refineGrant } from '../../../src/people/identity/keys/key-grant.ts'
import { keyState } from '../../../src/people/identity/keys/key-state.ts'

export default defineTool({
  name: 'developer.keys.create',
  title: 'Create an API key',
  summary: 'Create a developer API key with scopes and a spend policy; the secret is shown once.',
  description:
    'Only a hash of the secret is kept. An API key has no access to operations for signed-in persons, and never switches a rail on.',
  route: 'POST /api/developer/keys',
  who: 'person',
  effect: 'write',
  proof: 'step-up',
  shownOnce: ['key'],
  policies: 'both',
  input: z.strictObject(grantMembers).superRefine(refineGrant),
  output: developerKeyView.extend({
    key: z
      .string()
      .nullable()
      .describe('The secret: "bsk_…". Null in a replayed answer, because it is shown once.'),
  }),
  failures: [],
  example: { name: 'Reports', scopes: ['wallets:read'] },
  run: async (context, input) => {
    const { database, newId, settings, now: at } = context
    const { key, secret } = await createApiKey(
      { database, newId, mode: settings.mode },
      {
        accountId: requirePerson(context).account.id,
        name: input.name,
        scopes: input.scopes,
        policy: input.policy ?? null,
        expiresAt: keyExpiry(input, at),
        at,
      },
    )
    await recordChange(context, {
      action: 'key.created',
      object: { kind: 'key', id: key.id },
      after: keyState(key),
    })
    return { ...viewDeveloperKey(key), key: secret }
  },
})
