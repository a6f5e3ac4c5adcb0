/**
 * Books the steps and the ends of swaps that are on their way, or that a crash or a slow chain left open, and sends the payments whose
 * money has arrived by one. One that has been on its way for an hour gets a recourse. Their transfers are finished by `settle-pending`.
 */
import type { NewId } from '../../core/base/ids.ts'
import { onChain } from '../../providers/chain/chains.ts'
import { claimSwaps, type SwapOrder } from '../../rails/swaps/orders.ts'
import { type AnySwapDependencies, settleSwap } from '../../rails/swaps/settle-swap.ts'
import { claimTransfer, findTransferOfDecision } from '../../rails/wallets/store.ts'
import { resumeTransfer } from '../../rails/wallets/transfers/resume-transfer.ts'
import type { TransferDependencies } from '../../rails/wallets/transfers/send-transfer.ts'
import { openOverdue } from '../../records/recourse/bridge-route.ts'

/** A more recently touched swap may still be handled by its request. */
const QUIET_MS = 1_500
const BATCH = 50

/** Runs one round. A failing swap does not block the others. @param signal stops the round early. */
export async function settleSwaps(
  parts: AnySwapDependencies & TransferDependencies & { readonly newId: NewId },
  signal: AbortSignal,
): Promise<number> {
  const { clock, log } = parts
  const at = clock()
  const swaps = await claimSwaps(parts, { before: new Date(at.getTime() - QUIET_MS), at, limit: BATCH })
  for (const swap of swaps) {
    if (signal.aborted) break
    await settleSwap(parts, swap)
      .then(async (settled) => {
        await sendFunded(parts, settled)
        await openOverdue(parts, settled)
      })
      .catch((err: unknown) => log.warn({ err, swapId: swap.id }, 'booking the end of a swap failed'))
  }
  return swaps.length
}

/** Sends the transfer whose money has arrived by a swap. After a crash, `settle-pending` does. */
async function sendFunded(
  parts: AnySwapDependencies & TransferDependencies,
  { state, fundingId, decisionId, toChain }: SwapOrder,
): Promise<void> {
  if (state !== 'confirmed' || fundingId === null || toChain === null) return
  const transfer = await findTransferOfDecision(parts.database, decisionId)
  if (transfer?.state !== 'reserved') return
  const at = parts.clock()
  if (!(await claimTransfer(parts.database, transfer.id, new Date(at.getTime() + 1), at))) return
  await resumeTransfer(onChain(parts, toChain), transfer)
}
