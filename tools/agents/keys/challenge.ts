import { z } from 'zod'
import { requireCaller } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { keyChallenge } from '../../../src/people/identity/keys/key-proof.ts'

export default defineTool({
  name: 'agents.keys.challenge',
  title: 'Challenge for an agent’s key',
  summary: 'Get the challenge that an agent signs with its new key to prove possession of the private key.',
  description:
    'Sign its bytes with the new key and send the signature with POST /api/agents/keys. A challenge is used once.',
  route: 'POST /api/agents/keys/challenge',
  who: 'person',
  effect: 'write',
  proof: 'none',
  input: z.strictObject({}),
  output: z.strictObject({
    challenge: z.string().describe('Text to sign with Ed25519, unchanged; the signature is `proof`.'),
    expiresAt: z.string().describe('When the challenge expires, ISO 8601 UTC.'),
  }),
  failures: [],
  example: {},
  run: async (context) => {
    const { challenge, expiresAt } = keyChallenge(
      context.settings.sessionKey,
      requireCaller(context).account.id,
      context.now,
    )
    return { challenge, expiresAt: expiresAt.toISOString() }
  },
})
