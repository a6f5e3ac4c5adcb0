/** Moves the money of a purchase from the wallet to its purse, before anything is signed. */
import { timers } from '../../core/base/timers.ts'
import { Failure } from '../../core/failures/failure.ts'
import { type EndingParts, failPurchase } from './end-purchase.ts'
import { type Purchase, whereIsMoney } from './store.ts'

/** How long a purchase waits for the chain. */
const WAIT_MS = 20_000
const POLL_MS = 100

/**
 * Safe to repeat: the money is sent once. @param send sends the money under the decision of the purchase.
 * @throws Failure of `send` when it was refused: the money is available again, and nothing was paid. `provider_unavailable` while
 * it is under way.
 */
export async function fundPurchase(
  parts: EndingParts,
  purchase: Purchase,
  send: (units: bigint) => Promise<unknown>,
): Promise<void> {
  const first = await whereIsMoney(parts.database, purchase)
  if (first.place === 'purse') return
  try {
    if (first.place === 'wallet') await send(first.units)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    // `conflict`: another call has sent it.
    if (error.code !== 'settlement_pending' && error.code !== 'conflict') {
      await failPurchase(parts, purchase, { from: 'reserved', code: error.code, failure: error.message })
      throw error
    }
  }
  const until = timers.monotonic() + WAIT_MS
  for (;;) {
    const { place } = await whereIsMoney(parts.database, purchase)
    if (place === 'purse') return
    if (place === 'released') throw buildGivenUpFailure(purchase.decision_id)
    if (timers.monotonic() > until) break
    await timers.sleep(POLL_MS)
  }
  throw new Failure(
    'provider_unavailable',
    'The chain has not confirmed the money for this purchase in time. Nothing is paid yet.',
    {
      decisionId: purchase.decision_id,
      purchaseId: purchase.id,
      retryAfter: 5,
      hint: 'Repeat this call with the same idempotency key to go on; otherwise it is given up, and the money is available again.',
    },
  )
}

/** The money of a purchase takes longer from another chain than a call waits. */
export function buildMovingFailure({ id, decision_id: decisionId }: Purchase): Failure {
  return new Failure(
    'provider_unavailable',
    'The money for this purchase is still on its way from another chain. Nothing is paid yet.',
    {
      decisionId,
      purchaseId: id,
      retryAfter: 5,
      hint: 'Repeat this call with the same idempotency key to go on; otherwise it is given up, and the money is available on the seller’s chain.',
    },
  )
}

/** A purchase that ended before anything was signed. */
export function buildGivenUpFailure(decisionId: string): Failure {
  return new Failure(
    'provider_unavailable',
    'This purchase was given up before anything was signed. Nothing was paid.',
    { decisionId, isFinal: true, hint: 'Send it again with a new idempotency key.' },
  )
}
