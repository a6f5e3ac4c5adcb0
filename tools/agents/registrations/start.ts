import { z } from 'zod'
import { namesOfOrigin } from '../../../src/core/base/origins.ts'
import { visibleText } from '../../../src/core/base/untrusted-text.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { agentPublicKey, grantMembers, keySignature } from '../../../src/people/identity/keys/key-grant.ts'
import { isRegistrationProof } from '../../../src/people/identity/keys/registration-proof.ts'
import { openRegistration } from '../../../src/people/identity/keys/registrations.ts'
import { toUserCode } from '../../../src/people/identity/user-code.ts'

export default defineTool({
  name: 'agents.registrations.start',
  title: 'Ask to be registered',
  summary: 'Ask an owner to register the caller’s new public key; the owner decides on a page.',
  description:
    'For agents: "bursar agent register" does all of it. Show `connectUrl` and `userCode` to the owner, then send `secret` to POST /api/agents/registrations/{code}/outcome every `intervalSeconds` until it is decided. The code grants nothing; the private key never leaves the agent.',
  route: 'POST /api/agents/registrations',
  who: 'public',
  effect: 'write',
  proof: 'none',
  rate: 'registrations',
  input: z.strictObject({
    name: grantMembers.name
      .transform(visibleText)
      .refine((text) => text !== '', 'must have visible text')
      .describe('Name proposed by the agent.'),
    publicKey: agentPublicKey.describe('The agent’s new Ed25519 public key, used for one registration.'),
    signedAt: z.iso.datetime().describe('Time of the proof, ISO 8601 UTC, at most five minutes ago.'),
    proof: keySignature.describe(
      'The key’s signature over the lines "bursar agent registration", the origin of the gateway, and `signedAt`, joined by a line feed.',
    ),
  }),
  output: z.strictObject({
    code: z.string().describe('Code of the registration.'),
    userCode: z.string().describe('Short code that the owner compares with the page, such as `BCDF-GHJK`.'),
    connectUrl: z.string().describe('Page where the owner decides.'),
    secret: z.string().describe('Secret of the agent, with which only it can ask for the outcome.'),
    intervalSeconds: z.int().describe('Seconds between questions for the outcome.'),
    expiresAt: z.string().describe('Until when the owner can decide, ISO 8601 UTC.'),
  }),
  failures: ['conflict', 'rate_limited', 'signature_rejected'],
  example: {
    name: 'Invoice bot',
    publicKey: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
    signedAt: '2026-11-20T12:00:00.000Z',
    proof: 'A'.repeat(86),
  },
  run: async ({ database, settings, now: at }, { name, publicKey, signedAt, proof }) => {
    const {
      origin,
      webOrigins: [site = origin],
    } = settings
    if (!isRegistrationProof(namesOfOrigin(origin), { publicKey, signedAt, proof, at }))
      throw new Failure(
        'signature_rejected',
        'The proof is not the key’s signature of the last five minutes.',
        {
          hint: `Sign for the origin ${origin}, and check the clock of this machine.`,
        },
      )
    const { code, secret, expiresAt } = await openRegistration(database, { name, publicKey, at })
    return {
      code,
      userCode: toUserCode(code),
      connectUrl: `${site}/agents/connect/${code}`,
      secret,
      intervalSeconds: 5,
      expiresAt: expiresAt.toISOString(),
    }
  },
})
