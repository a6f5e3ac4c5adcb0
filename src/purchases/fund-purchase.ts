/** Moves the money of a purchase from the wallet to its purse, before anything is signed. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '../failures/failure.ts'
import { type EndingParts, failPurchase } from './end-purchase.ts'
import { type Purchase, whereIsMoney } from './store.ts'

/** How long a purchase waits for the chain. */
const WAIT_MS = 20_000
const POLL_MS = 100

/**
 * @param send sends the money under the decision of the purchase.
 * @throws Failure of `send` when it was refused: the money is available again, and nothing was paid.
 */
export async function fundPurchase(
  parts: EndingParts,
  purchase: Purchase,
  send: () => Promise<unknown>,
): Promise<Purchase> {
  try {
    await send()
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    if (error.code !== 'settlement_pending') {
      await failPurchase(parts, purchase, { from: 'reserved', code: error.code, failure: error.message })
      throw error
    }
  }
  const until = performance.now() + WAIT_MS
  for (;;) {
    const place = await whereIsMoney(parts.database, {
      decisionId: purchase.decision_id,
      purseId: purchase.purse_id,
    })
    if (place === 'purse') return purchase
    if (place === 'released' || performance.now() > until) break
    await sleep(POLL_MS)
  }
  throw new Failure(
    'provider_unavailable',
    'The chain did not confirm the money for this purchase in time. Nothing was paid, and this purchase will not be.',
    {
      decisionId: purchase.decision_id,
      purchaseId: purchase.id,
      isFinal: true,
      hint: 'Try again later with a new idempotency key.',
    },
  )
}
