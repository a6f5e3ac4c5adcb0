/** An agent as its owner sees it: key, permissions and usage. */
import { z } from 'zod'
import { storedPolicy } from '../../../policies/policy.ts'
import { formatUsd } from '../../../policies/usd.ts'
import { type AccessKey, effectiveStatus } from '../../core/base/principal.ts'
import type { Connection } from '../../storage/database.ts'
import { readSetAside, showUsage, usageView } from './usage.ts'

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
  status: z
    .enum(['active', 'paused', 'revoked'])
    .describe('Only an `active` key works. One below a `paused` key is `paused`.'),
  pausedAt: z.string().nullable().describe('When it was stopped, ISO 8601 UTC; null while active.'),
  scopes: z.array(z.string()).describe('Scopes granted to the agent.'),
  policy: z.looseObject({}).nullable().describe('The spend policy, amounts in USD.'),
  policyVersion: z.int().describe('Incremented with every policy change.'),
  usage: usageView.describe('Usage of the key today, this week and this month (UTC).'),
  setAside: z.string().describe('USD that it sets aside for keys below it, and that they have not spent.'),
  path: z
    .array(
      z.strictObject({
        agentId: z.string().describe('`key_…`'),
        name: z.string().describe('Name that it was given.'),
      }),
    )
    .describe('Keys above it, root first.'),
  earmarked: z.string().nullable().describe('USD set aside for it above; null: nothing.'),
  task: z.string().nullable().describe('Label of its spends.'),
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
  const earmarkMicros = key.delegation?.earmarkMicros ?? null
  return {
    agentId: key.id,
    keyId: key.thumbprint,
    name: key.name,
    algorithm: key.publicKey === null ? null : 'ed25519',
    connection: key.kind === 'agent' && key.publicKey === null ? 'api_key' : connections[key.kind],
    status: effectiveStatus(key),
    pausedAt: key.pausedAt?.toISOString() ?? null,
    scopes: [...key.scopes],
    policy,
    policyVersion: key.policyVersion,
    usage: await showUsage(database, { keyId: key.id, policy }, now),
    setAside: formatUsd(await readSetAside(database, { holderId: key.id, path: [], at: now })),
    path: (key.delegation?.path ?? []).map(({ id, name }) => ({ agentId: id, name })),
    earmarked: earmarkMicros === null ? null : formatUsd(earmarkMicros),
    task: key.delegation?.task ?? null,
    createdAt: key.createdAt.toISOString(),
    expiresAt: key.expiresAt?.toISOString() ?? null,
    firstUsedAt: key.firstUsedAt?.toISOString() ?? null,
  }
}
