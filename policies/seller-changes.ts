/** Sellers whose terms differ from those the account has paid before. Such a purchase needs its owner's approval. */
import { type Violation, violationOf } from './decision.ts'
import type { SellerFacts } from './spend.ts'

/** A price may rise by a tenth without an approval. */
const TOLERATED_RISE = { numerator: 11n, denominator: 10n } as const

/** Compares a purchase with what is remembered of its seller. A seller without a past has changed nothing. */
export function sellerChanges({ payTo, price, knownPayees, knownPrice }: SellerFacts): readonly Violation[] {
  const hasOtherPayee = knownPayees.length > 0 && !knownPayees.includes(payTo)
  const { numerator, denominator } = TOLERATED_RISE
  const isDearer = knownPrice !== null && BigInt(price) * denominator > BigInt(knownPrice) * numerator
  return [
    ...(hasOtherPayee
      ? [violationOf('payee_changed', { limit: knownPayees.join(','), requested: payTo })]
      : []),
    ...(isDearer ? [violationOf('price_changed', { limit: knownPrice, requested: price })] : []),
  ]
}
