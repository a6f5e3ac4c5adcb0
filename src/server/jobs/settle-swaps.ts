/** Books the steps and the ends of swaps that are on their way, or that a crash or a slow chain left open. Their transfers are finished by `settle-pending`. */
import { claimSwaps } from '../../rails/swaps/orders.ts'
import { type AnySwapDependencies, settleSwap } from '../../rails/swaps/settle-swap.ts'

/** A more recently touched swap may still be handled by its request. */
const QUIET_MS = 1_500
const BATCH = 50

/** Runs one round. A failing swap does not block the others. @param signal stops the round early. */
export async function settleSwaps(parts: AnySwapDependencies, signal: AbortSignal): Promise<number> {
  const { clock, log } = parts
  const at = clock()
  const swaps = await claimSwaps(parts, { before: new Date(at.getTime() - QUIET_MS), at, limit: BATCH })
  for (const swap of swaps) {
    if (signal.aborted) break
    await settleSwap(parts, swap).catch((err: unknown) =>
      log.warn({ err, swapId: swap.id }, 'booking the end of a swap failed'),
    )
  }
  return swaps.length
}
