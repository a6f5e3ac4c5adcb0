/** Owner approvals required by a policy. */
import type { Policy } from './policy.ts'
import { hasSellerChanged } from './rules/seller-changed.ts'
import { isUnknownSeller } from './rules/seller-record.ts'
import type { SellerFacts } from './spend.ts'
import { toUsdMicros } from './usd.ts'

/**
 * Checks whether the owner must approve a spend that the rest of the policy allows.
 * @param usdMicros value in millionths of a US dollar; null (unknown) needs approval.
 * @param seller seller of a purchase: one whose terms have changed, or that is unknown, may need approval.
 */
export function needsApproval(
  policy: Policy,
  usdMicros: bigint | null,
  seller: SellerFacts | null = null,
): boolean {
  const { approval } = policy
  if (approval === undefined) return false
  if (seller !== null && (hasSellerChanged(seller) || isUnknownSeller(policy, seller))) return true
  return usdMicros === null || usdMicros > toUsdMicros(approval.above)
}
