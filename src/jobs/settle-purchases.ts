/** Finishes purchases that a crash or a slow seller left open. Outcomes come from the chain, never from elapsed time alone. */
import { failPurchase } from '../purchases/end-purchase.ts'
import { bookOutcome, cancelPurchase, type PayingParts } from '../purchases/pay-purchase.ts'
import { claimPurchase, openPurchases, orphanedReservations, type Purchase } from '../purchases/store.ts'
import { releaseSpend } from '../spending/release.ts'
import { findTransferOfDecision } from '../wallets/store.ts'

const BATCH = 100
/** A younger reservation may still get its row. */
const QUIET_MS = 60_000
/** Pause between two looks at the same purchase. */
const PAUSE_MS = 2_000

/** Runs one round. A failing purchase does not block the others. @param signal stops the round early. */
export async function settlePurchases(parts: PayingParts, signal: AbortSignal): Promise<number> {
  const { database, clock, log } = parts
  const now = clock()
  for (const decisionId of await orphanedReservations(database, new Date(now.getTime() - QUIET_MS)))
    await releaseSpend(database, { decisionId, at: clock() })
  const ids = await openPurchases(database, now, BATCH)
  for (const id of ids) {
    if (signal.aborted) break
    const at = clock()
    const until = new Date(at.getTime() + PAUSE_MS)
    const purchase = await claimPurchase(database, { id, until, at })
    if (purchase !== undefined)
      await finish(parts, purchase).catch((err: unknown) =>
        log.error({ err, purchaseId: id }, 'finishing a purchase failed'),
      )
  }
  return ids.length
}

/** A development chain without traffic has no block that shows that the time has passed; a cancellation is one. */
function isStuck(
  { chain, clock }: Pick<PayingParts, 'chain' | 'clock'>,
  { valid_before: validBefore }: Purchase,
): boolean {
  const endedAt = validBefore?.getTime() ?? Number.POSITIVE_INFINITY
  return chain.isGasFree && clock().getTime() > endedAt + PAUSE_MS
}

async function finish(parts: PayingParts, purchase: Purchase): Promise<void> {
  if (purchase.state === 'signed') {
    if (purchase.is_canceled) return cancelPurchase(parts, purchase)
    const outcome = await bookOutcome(parts, purchase, null)
    if (outcome === 'open' && isStuck(parts, purchase)) await cancelPurchase(parts, purchase)
    return
  }
  if (purchase.state !== 'reserved') return
  // Its money may be on its way to the purse: the transfer ends first.
  const transfer = await findTransferOfDecision(parts.database, purchase.decision_id)
  if (transfer !== undefined && transfer.state !== 'confirmed' && transfer.state !== 'failed') return
  await failPurchase(parts, purchase, {
    from: 'reserved',
    code: 'provider_unavailable',
    failure: 'it was given up before anything was signed',
  })
}
