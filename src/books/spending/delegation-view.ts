/** A delegated key as its parent and its owner see it. */
import { z } from 'zod'
import { storedPolicy } from '../../../policies/policy.ts'
import { formatUsd } from '../../../policies/usd.ts'
import { type AccessKey, shownStatus } from '../../core/base/principal.ts'
import type { Connection } from '../../storage/database.ts'
import { readUsage, spanUse, viewUsage } from './usage.ts'

export const pathUsageView = z.strictObject({
  ...spanUse('today'),
  total: z.strictObject(spanUse('in all')).describe('Since the key began.'),
})
pathUsageView.register(z.globalRegistry, { id: 'PathUsage' })

/** Usage of a delegated key: of today, and of its life. */
export function viewPathUsage(...of: Parameters<typeof viewUsage>): z.output<typeof pathUsageView> {
  const { used, remaining, count, total } = viewUsage(...of)
  return { used, remaining, count, total }
}

export const delegationView = z.strictObject({
  agentId: z.string().describe('`key_…`'),
  keyId: z.string().nullable().describe('RFC 7638 thumbprint of its public key; null for a bearer.'),
  parentId: z.string().describe('`key_…` above it.'),
  path: z.array(z.string()).describe('`key_…` from the root to this key. Each judges and counts its spends.'),
  depth: z.int().describe('Generations below the root, 1 to 4.'),
  name: z.string().describe('Name that it was given.'),
  status: z
    .enum(['active', 'paused', 'expired', 'revoked'])
    .describe('`paused` also while a key above it is.'),
  scopes: z.array(z.string()).describe('Its scopes.'),
  policy: z.looseObject({}).nullable().describe('Its own spend policy, amounts in USD.'),
  expiresAt: z.string().nullable().describe('When it ends, ISO 8601 UTC.'),
  earmarked: z.string().nullable().describe('USD set aside for it above; null: nothing.'),
  usage: pathUsageView.describe('Its usage, and that of all keys below it.'),
  task: z.string().nullable().describe('Label of its spends.'),
  createdAt: z.string().describe('ISO 8601 UTC.'),
})
delegationView.register(z.globalRegistry, { id: 'Delegation' })

export async function viewDelegation(
  database: Connection,
  key: AccessKey,
  now: Date,
): Promise<z.input<typeof delegationView>> {
  const { delegation } = key
  const parent = delegation?.path.at(-1)
  if (delegation === undefined || parent === undefined) throw new Error(`${key.id} is no delegation`)
  const policy = storedPolicy.nullable().parse(key.policy ?? null)
  const usage = await readUsage(database, { keyId: key.id }, now)
  return {
    agentId: key.id,
    keyId: key.thumbprint,
    parentId: parent.id,
    path: [...delegation.path.map(({ id }) => id), key.id],
    depth: delegation.path.length,
    name: key.name,
    status: shownStatus(key, now),
    scopes: [...key.scopes],
    policy,
    expiresAt: key.expiresAt?.toISOString() ?? null,
    earmarked: delegation.earmarkMicros === null ? null : formatUsd(delegation.earmarkMicros),
    usage: viewPathUsage(usage, policy, now),
    task: delegation.task,
    createdAt: key.createdAt.toISOString(),
  }
}
