/** Parses the policy of a key once per version. */
import { LRUCache } from 'lru-cache'
import { type Policy, storedPolicy } from '../../../policies/policy.ts'
import type { AccessKey, AccountPrincipal } from '../../core/base/principal.ts'

// Never stale: the cache key has the version, and the key's row is read on every request.
const parsed = new LRUCache<string, Policy>({ max: 10_000 })

/** The keys above a key with their policies, root first. */
export function parseAncestors({ delegation }: Pick<AccessKey, 'delegation'>) {
  return delegation?.path.map((key) => ({ ...key, policy: parsePolicy(key) })) ?? []
}

/**
 * Returns the spend policy of a key; null if it has none and may not spend. @throws when the stored document is not
 * valid.
 */
export function parsePolicy(key: Pick<AccessKey, 'id' | 'policy' | 'policyVersion'>): Policy | null {
  if (key.policy === null || key.policy === undefined) return null
  const name = `${key.id}:${key.policyVersion}`
  const policy = parsed.get(name) ?? storedPolicy.parse(key.policy)
  parsed.set(name, policy)
  return policy
}

/** Judges which chains the money of a payment may leave: policies may name the only ones. */
export function mayLeave(policies: readonly (Policy | null)[]): (chain: string) => boolean {
  return (chain) => policies.every((policy) => policy?.chains?.some((allowed) => allowed === chain) ?? true)
}

/** Judges which chains the money of a caller's payment may leave, by the policies of its key and of those above it. */
export function findLeavable(caller: AccountPrincipal): (chain: string) => boolean {
  if (caller.kind !== 'key') return () => true
  return mayLeave([parsePolicy(caller.key), ...parseAncestors(caller.key).map(({ policy }) => policy)])
}
