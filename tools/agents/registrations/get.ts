import { z } from 'zod'
import { untrustedText } from '../../../src/core/base/untrusted-text.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { readRegistration } from '../../../src/people/identity/keys/registrations.ts'
import { computeThumbprint } from '../../../src/people/identity/keys/thumbprint.ts'
import { toUserCode } from '../../../src/people/identity/user-code.ts'

export default defineTool({
  name: 'agents.registrations.get',
  title: 'Agent that asks to be registered',
  summary: 'Read an agent’s request to be registered, by the code that the agent shows.',
  description:
    'Approve it with POST /api/agents/keys {registration, publicKey, name, scopes, policy}. Whoever approves becomes the owner, so compare `userCode` with what the agent shows.',
  route: 'GET /api/agents/registrations/{code}',
  who: 'person',
  // Only an owner can let the agent in.
  role: 'owner',
  effect: 'read',
  rate: 'authorizations',
  input: z.strictObject({ code: z.string().max(64).describe('Code of the registration.') }),
  output: z.strictObject({
    status: z
      .enum(['pending', 'approved', 'rejected', 'expired'])
      .describe('Only a `pending` registration can be approved or rejected.'),
    userCode: z.string().describe('Short code that the agent shows too, such as `BCDF-GHJK`.'),
    name: untrustedText('Name that the agent gave itself.'),
    publicKey: z.string().describe('The agent’s Ed25519 public key, 32 bytes as base64url.'),
    keyId: z.string().describe('RFC 7638 thumbprint of the public key.'),
    createdAt: z.string().describe('ISO 8601 UTC.'),
    expiresAt: z.string().describe('Until when it can be decided, ISO 8601 UTC.'),
  }),
  failures: ['not_found', 'rate_limited'],
  example: { code: 'qZb0-WyfTQ6mU2Tq0x3h2A' },
  run: async ({ database, now }, { code }) => {
    const registration = await readRegistration(database, { code, now })
    return {
      status: registration.status,
      userCode: toUserCode(code),
      name: registration.name,
      publicKey: registration.publicKey,
      keyId: computeThumbprint(registration.publicKey),
      createdAt: registration.createdAt.toISOString(),
      expiresAt: registration.expiresAt.toISOString(),
    }
  },
})
