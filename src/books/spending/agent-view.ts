/** An agent as its owner sees it: key, permissions and usage. */
import { z } from 'zod'
import { storedPolicy } from '../../../policies/policy.ts'
import type { AccessKey } from '../../core/base/principal.ts'
import type { Connection } from '../../storage/database.ts'
import { showUsage, usageView } from './usage.ts'

export const agentView = z.strictObject({
  agentId: z.string().describe('`key_…`'),
  keyId: z
    .string()
    .nullable()
    .describe(
      'RFC 7638 thumbprint of the public key: `keyid` of the agent’s signatures. Null for an OAuth grant.',
    ),
  name: z.string().describe('Name the owner gave the agent.'),
  algorithm: z
    .literal('ed25519')
    .nullable()
    .describe('Signature algorithm of the agent; null for an OAuth grant.'),
  connection: z
    .enum(['signed', 'oauth', 'api_key'])
    .describe('How it connects: `signed` requests, `oauth` or an `api_key`.'),
  status: z.enum(['active', 'paused', 'revoked']).describe('State of the key; only an `active` key works.'),
  pausedAt: z.string().nullable().describe('When it was stopped, ISO 8601 UTC; null while active.'),
  scopes: z.array(z.string()).describe('Scopes granted to the agent.'),
  policy: z.looseObject({}).nullable().describe('The spend policy, amounts in USD.'),
  policyVersion: z.int().describe('Incremented with every policy change.'),
  usage: usageView.describe('Usage of the key today, this week and this month (UTC).'),
  createdAt: z.string().describe('ISO 8601 UTC.'),
  expiresAt: z.string().nullable().describe('When the key expires, ISO 8601 UTC; null: never.'),
  firstUsedAt: z.string().nullable().describe('Time of its first call, ISO 8601 UTC; null before it.'),
})
agentView.register(z.globalRegistry, { id: 'Agent' })

const connections = { agent: 'signed', grant: 'oauth', developer: 'api_key' } as const

export async function viewAgent(
  database: Connection,
  key: AccessKey,
  now: Date,
): Promise<z.input<typeof agentView>> {
  const policy = storedPolicy.nullable().parse(key.policy ?? null)
  return {
    agentId: key.id,
    keyId: key.thumbprint,
    name: key.name,
    algorithm: key.publicKey === null ? null : 'ed25519',
    connection: connections[key.kind],
    status: key.status,
    pausedAt: key.pausedAt?.toISOString() ?? null,
    scopes: [...key.scopes],
    policy,
    policyVersion: key.policyVersion,
    usage: await showUsage(database, { keyId: key.id, policy }, now),
    createdAt: key.createdAt.toISOString(),
    expiresAt: key.expiresAt?.toISOString() ?? null,
    firstUsedAt: key.firstUsedAt?.toISOString() ?? null,
  }
}
