/** States of a payout in the banking provider's words, ranked, so that late and repeated reports change nothing. */

/** Status that the owner of a payout sees. */
export const payoutStatuses = ['pending', 'sent', 'paid', 'returned', 'failed'] as const

export type PayoutStatus = (typeof payoutStatuses)[number]

/** The bank has paid. */
export const PAID_RANK = 5
/** The money is back or never left. */
export const ENDED_RANK = 7

/**
 * Ranks of states; a higher rank never gives way to a lower one. A refund that is in flight, or has failed, leaves the
 * money where it is.
 */
const ranks: ReadonlyMap<string, number> = new Map([
  ['awaiting_funds', 1],
  ['in_review', 2],
  ['funds_received', 3],
  ['payment_submitted', 4],
  ['payment_processed', PAID_RANK],
  ['refund_failed', 6],
  ['refund_in_flight', 6],
  ['undeliverable', 6],
  ['error', ENDED_RANK],
  ['canceled', ENDED_RANK],
  ['returned', ENDED_RANK],
  ['refunded', ENDED_RANK],
])

/** Rank of a state; 0 for an unknown one, which changes nothing. */
export function payoutRank(state: string): number {
  return ranks.get(state) ?? 0
}

/** Status of a payout in a state. @param before its status so far. */
export function payoutStatus(state: string, before: PayoutStatus): PayoutStatus {
  const rank = payoutRank(state)
  if (rank === PAID_RANK) return 'paid'
  if (rank === ENDED_RANK) {
    const cameBack = state === 'returned' || state === 'refunded' || before === 'paid'
    return cameBack ? 'returned' : 'failed'
  }
  if (rank === 6) return before === 'paid' ? 'paid' : 'sent'
  if (rank === 4) return 'sent'
  return before
}
