/** An agent as its owner sees it: its key, what it may do, and what it used. */
import { z } from 'zod'
import { spendPolicy } from '../../policies/policy.ts'
import type { AccessKey } from '../base/principal.ts'
import type { Connection } from '../storage/database.ts'
import { showUsage, usageView } from './usage.ts'

/** The view. */
export const agentView = z.strictObject({
  agentId: z.string().describe('`key_…`'),
  keyId: z
    .string()
    .nullable()
    .describe(
      'RFC 7638 thumbprint of the public key: `keyid` of the agent’s signatures. Null for an OAuth grant.',
    ),
  name: z.string().describe('What the owner calls the agent.'),
  algorithm: z.literal('ed25519').nullable().describe('How the agent signs. Null for an OAuth grant.'),
  status: z.enum(['active', 'paused', 'revoked']).describe('Whether the key works.'),
  scopes: z.array(z.string()).describe('What the agent may do.'),
  policy: z.looseObject({}).nullable().describe('The spend policy, amounts in USD.'),
  policyVersion: z.int().describe('Rises with every change of the policy.'),
  usage: usageView.describe('What the key used today.'),
  createdAt: z.string().describe('ISO 8601 UTC.'),
  expiresAt: z.string().nullable().describe('When the key ends, ISO 8601 UTC.'),
})

/** {@link agentView} of a key. */
export async function viewAgent(
  database: Connection,
  key: AccessKey,
  now: Date,
): Promise<z.input<typeof agentView>> {
  const policy = spendPolicy.nullable().parse(key.policy ?? null)
  return {
    agentId: key.id,
    keyId: key.thumbprint,
    name: key.name,
    algorithm: key.publicKey === null ? null : 'ed25519',
    status: key.status,
    scopes: [...key.scopes],
    policy,
    policyVersion: key.policyVersion,
    usage: await showUsage(database, { keyId: key.id, policy }, now),
    createdAt: key.createdAt.toISOString(),
    expiresAt: key.expiresAt?.toISOString() ?? null,
  }
}
