import { z } from 'zod'
import { agentView, viewAgent } from '../../../src/books/spending/agent-view.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { type Context, requireCaller } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { registerAgentKey } from '../../../src/people/identity/keys/agent-keys.ts'
import {
  agentPublicKey,
  grantMembers,
  keyExpiry,
  keySignature,
  refineGrant,
} from '../../../src/people/identity/keys/key-grant.ts'
import { isKeyProof } from '../../../src/people/identity/keys/key-proof.ts'
import { keyState } from '../../../src/people/identity/keys/key-state.ts'
import { decideRegistration } from '../../../src/people/identity/keys/registrations.ts'

const registration = z
  .strictObject({
    ...grantMembers,
    publicKey: agentPublicKey.describe(
      'The agent’s own Ed25519 public key; the private key never leaves the agent.',
    ),
    proof: keySignature
      .optional()
      .describe(
        'The key’s signature over the challenge of POST /api/agents/keys/challenge. Required in production.',
      ),
    registration: z
      .string()
      .max(64)
      .optional()
      .describe(
        'Code of the agent’s own request (`bursar agent register`), which this approves; replaces `proof`.',
      ),
  })
  .superRefine(refineGrant)

export default defineTool({
  name: 'agents.keys.create',
  title: 'Register an agent',
  summary: 'Register an agent with its own Ed25519 key, scopes and spend policy.',
  description:
    'The policy is required and holds for every rail. The agent signs its requests with the key (RFC 9421); only its public part is stored. A name may repeat, a public key may not (409 `conflict`).',
  route: 'POST /api/agents/keys',
  who: 'person',
  effect: 'write',
  proof: 'step-up',
  policies: 'both',
  input: registration,
  output: agentView,
  failures: ['conflict', 'not_found', 'signature_rejected'],
  example: {
    name: 'Invoice bot',
    publicKey: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
    scopes: ['wallets:read', 'wallets:transfer'],
    policy: { perTransaction: { max: '5' }, dailyBudget: { max: '12' }, categories: { allow: ['transfer'] } },
  },
  run: async (context, input) => {
    const { account } = requireCaller(context)
    const expiresAt = keyExpiry(input, context.now)
    const { publicKey, proof, registration: code } = input
    if (code === undefined) requireProof(context, { accountId: account.id, publicKey, proof })
    else await decideRegistration(context.database, { code, publicKey, status: 'approved', now: context.now })
    const key = await registerAgentKey(context, {
      accountId: account.id,
      name: input.name,
      publicKey,
      scopes: input.scopes,
      policy: input.policy ?? null,
      expiresAt,
      at: context.now,
    })
    const view = await viewAgent(context.database, key, context.onCalendar(context.now))
    await recordChange(context, {
      action: 'key.created',
      object: { kind: 'key', id: key.id },
      after: keyState(key),
    })
    return view
  },
})

/** Prevents the registration of a public key without its private key; the sandbox accepts a missing proof. */
function requireProof(
  { settings, now: at }: Context,
  { accountId, publicKey, proof }: { accountId: string; publicKey: string; proof: string | undefined },
): void {
  const hint = 'Sign the challenge of POST /api/agents/keys/challenge with the new key.'
  if (proof === undefined) {
    if (settings.mode === 'sandbox') return
    throw new Failure('invalid_request', 'proof: is required', {
      issues: [{ path: 'proof', message: 'is required' }],
      hint,
    })
  }
  const secrets = [settings.sessionKey, ...settings.previousSessionKeys]
  if (!secrets.some((secret) => isKeyProof(secret, { accountId, publicKey, proof, at })))
    throw new Failure(
      'signature_rejected',
      'The proof is not the key’s signature over a current challenge.',
      { hint },
    )
}
