/** What a key may spend only after its owner has approved it. */
import type { Policy } from './policy.ts'
import { usdMicrosOf } from './usd.ts'

/**
 * Whether the owner must approve a spend that the rest of the policy allows.
 * @param usdMicros its worth in millionths of a US dollar; null, where it is not known, needs approval.
 */
export function needsApproval({ approval }: Policy, usdMicros: bigint | null): boolean {
  if (approval === undefined) return false
  return usdMicros === null || usdMicros > usdMicrosOf(approval.above)
}
