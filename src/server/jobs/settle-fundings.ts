/** Ends payments whose money does not arrive: its burn has failed, or it takes too long. Arrivals are booked by `settle-swaps`. */
import { type EndingParts, failPurchase } from '../../rails/buying/end-purchase.ts'
import { findPurchase } from '../../rails/buying/store.ts'
import { explainLostMove, failFunding, findLostFundings } from '../../rails/swaps/fundings.ts'

const BATCH = 50
const TOO_LATE = 'its money did not arrive in time'

/** Runs one round. @param signal stops the round early. */
export async function settleFundings(
  parts: EndingParts & { readonly onCalendar: (at: Date) => Date },
  signal: AbortSignal,
): Promise<number> {
  const { database, clock, log, onCalendar } = parts
  const at = clock()
  const lost = await findLostFundings(database, { calendar: onCalendar(at), limit: BATCH })
  for (const { fundingId, decisionId, burn } of lost) {
    if (signal.aborted) break
    const reason = burn === null ? TOO_LATE : explainLostMove(burn.failure)
    const code = burn?.code ?? 'provider_unavailable'
    if (await failFunding(database, { fundingId, failure: reason, code, at })) {
      const purchase = await findPurchase(database, { decisionId })
      if (purchase !== undefined)
        await failPurchase(parts, purchase, { from: 'reserved', code, failure: reason })
      log.warn({ fundingId, reason }, 'a payment ended unpaid because its money did not arrive')
    }
  }
  return lost.length
}
