/** The least that each budget on a key's path leaves, and the key whose budget it is. */
import { z } from 'zod'
import { budgetRules } from '../../../policies/budget.ts'
import { storedPolicy } from '../../../policies/policy.ts'
import { formatUsd } from '../../../policies/usd.ts'
import type { AccessKey } from '../../core/base/principal.ts'
import type { Connection } from '../../storage/database.ts'
import { readSetAside, readUsage } from './usage.ts'

export const pathLimit = z.strictObject({
  rule: z.string().describe('Rule of a budget.'),
  remaining: z.string().describe('The least that is left on the path: USD, or a count.'),
  agentId: z.string().describe('`key_…` whose limit it is.'),
})
pathLimit.register(z.globalRegistry, { id: 'PathLimit' })

export async function readPathLimits(
  database: Connection,
  key: AccessKey,
  now: Date,
): Promise<z.output<typeof pathLimit>[]> {
  const keys = [...(key.delegation?.path ?? []), key]
  const path = keys.map(({ id }) => id)
  const least = new Map<string, { rule: string; left: bigint; isCount: boolean; agentId: string }>()
  for (const one of keys) {
    const policy = storedPolicy.nullable().parse(one.policy ?? null)
    if (policy === null) continue
    const usage = await readUsage(database, { keyId: one.id }, now)
    const aside = await readSetAside(database, { holderId: one.id, path, at: now })
    for (const { rule, period, maxMicros, maxCount } of budgetRules(policy)) {
      const { usedMicros, count } = usage[period]
      const left = maxMicros === null ? BigInt((maxCount ?? 0) - count) : maxMicros - usedMicros - aside
      const known = least.get(rule)
      if (known === undefined || left < known.left)
        least.set(rule, { rule, left, isCount: maxMicros === null, agentId: one.id })
    }
  }
  return [...least.values()].map(({ rule, left, isCount, agentId }) => {
    const remaining = left > 0n ? left : 0n
    return { rule, remaining: isCount ? remaining.toString() : formatUsd(remaining), agentId }
  })
}
