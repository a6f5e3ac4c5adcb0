import { buildViolation, type Violation } from '../decision.ts'
import type { Policy } from '../policy.ts'
import type { SellerFacts, SpendFacts } from '../spend.ts'

/** A price may rise by a tenth without an approval. */
const TOLERATED_RISE = { numerator: 11n, denominator: 10n } as const

/** A seller that was paid before must name a payee that was paid; where the policy has approvals, its owner is asked. */
export function payeeChanged({ approval }: Policy, { seller }: SpendFacts): Violation | undefined {
  if (approval !== undefined || seller === undefined || seller === null) return undefined
  return hasOtherPayee(seller)
    ? buildViolation('payee_changed', { limit: seller.knownPayees.join(','), requested: seller.payTo })
    : undefined
}

/** A resource that was bought before must cost about the same; where the policy has approvals, its owner is asked. */
export function priceChanged({ approval }: Policy, { seller }: SpendFacts): Violation | undefined {
  if (approval !== undefined || seller === undefined || seller === null) return undefined
  return isDearer(seller)
    ? buildViolation('price_changed', { limit: seller.knownPrice, requested: seller.price })
    : undefined
}

/** Compares a purchase with what is remembered of its seller. A seller without a past has changed nothing. */
export function hasSellerChanged(seller: SellerFacts): boolean {
  return hasOtherPayee(seller) || isDearer(seller)
}

function hasOtherPayee({ payTo, knownPayees }: SellerFacts): boolean {
  return knownPayees.length > 0 && !knownPayees.includes(payTo)
}

function isDearer({ price, knownPrice }: SellerFacts): boolean {
  const { numerator, denominator } = TOLERATED_RISE
  return knownPrice !== null && BigInt(price) * denominator > BigInt(knownPrice) * numerator
}
