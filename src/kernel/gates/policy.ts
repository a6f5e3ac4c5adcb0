/** The policy of a key, parsed once a version. */
import { LRUCache } from 'lru-cache'
import { type Policy, spendPolicy } from '../../../policies/policy.ts'
import type { AccessKey } from '../../base/principal.ts'

// May be stale never: the version is part of the name, and the key's row is read on every request.
const parsed = new LRUCache<string, Policy>({ max: 10_000 })

/** The spend policy of a key, or null where it has none and so may not spend. @throws where the stored document is not valid. */
export function policyOf(key: Pick<AccessKey, 'id' | 'policy' | 'policyVersion'>): Policy | null {
  if (key.policy === null || key.policy === undefined) return null
  const name = `${key.id}:${key.policyVersion}`
  const policy = parsed.get(name) ?? spendPolicy.parse(key.policy)
  parsed.set(name, policy)
  return policy
}
