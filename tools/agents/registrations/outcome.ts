import { z } from 'zod'
import { defineTool } from '../../../src/kernel/tool.ts'
import { readRegistration } from '../../../src/people/identity/keys/registrations.ts'
import { computeThumbprint } from '../../../src/people/identity/keys/thumbprint.ts'
import { findKey } from '../../../src/people/identity/store.ts'

export default defineTool({
  name: 'agents.registrations.outcome',
  title: 'Outcome of a registration',
  summary: 'Read whether the owner has registered the agent.',
  description:
    'Poll it while `pending`. Once approved, `key` has the `agentId` and its scopes. A registration is decided once, within 15 minutes.',
  route: 'POST /api/agents/registrations/{code}/outcome',
  who: 'public',
  effect: 'read',
  input: z.strictObject({
    code: z.string().max(64).describe('Code of the registration.'),
    secret: z.string().max(64).describe('Secret from the start of the registration.'),
  }),
  output: z.strictObject({
    status: z
      .enum(['pending', 'approved', 'rejected', 'expired'])
      .describe('`pending` until the owner decides; `expired` after 15 minutes.'),
    key: z
      .strictObject({
        agentId: z.string().describe('`key_…`'),
        accountId: z.string().describe('Account of the owner: `acct_…`'),
        scopes: z.array(z.string()).describe('Scopes that the owner chose.'),
      })
      .nullable()
      .describe('The registered key; null unless `approved`, or once it is revoked.'),
  }),
  failures: ['not_found'],
  example: { code: 'qZb0-WyfTQ6mU2Tq0x3h2A', secret: 'x'.repeat(43) },
  run: async ({ database, now }, { code, secret }) => {
    const { status, publicKey } = await readRegistration(database, { code, secret, now })
    if (status !== 'approved') return { status, key: null }
    const found = await findKey(database, { thumbprint: computeThumbprint(publicKey) })
    if (found === undefined) return { status, key: null }
    const { account, key } = found
    return { status, key: { agentId: key.id, accountId: account.id, scopes: [...key.scopes] } }
  },
})
