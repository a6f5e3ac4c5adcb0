/** Owner approvals required by a policy. */
import type { Policy } from './policy.ts'
import { usdMicrosOf } from './usd.ts'

/**
 * Checks whether the owner must approve a spend that the rest of the policy allows.
 * @param usdMicros value in millionths of a US dollar; null (unknown) needs approval.
 */
export function needsApproval({ approval }: Policy, usdMicros: bigint | null): boolean {
  if (approval === undefined) return false
  return usdMicros === null || usdMicros > usdMicrosOf(approval.above)
}
