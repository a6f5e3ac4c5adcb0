/**
 * Finishes transfers that a crash, a lost connection or a slow chain left open. Outcomes come from the chain, never
 * from elapsed time alone.
 */

import { Failure } from '../../core/failures/failure.ts'
import { KEY_MISSING } from '../../providers/chain/port.ts'
import { claimTransfer, leaveTransfer, openTransfers } from '../../rails/wallets/store.ts'
import { releaseUnwrittenTransfers } from '../../rails/wallets/transfers/release-unwritten.ts'
import { resumeTransfer } from '../../rails/wallets/transfers/resume-transfer.ts'
import type { TransferDependencies } from '../../rails/wallets/transfers/send-transfer.ts'

/** A more recently updated transfer may still be handled by its request. */
const QUIET_MS = 5_000
const BATCH = 100

/** Runs one round. A failing transfer does not block the others. @param signal stops the round early. */
export async function settlePending(sending: TransferDependencies, signal: AbortSignal): Promise<number> {
  const { database, clock, log } = sending
  const before = new Date(clock().getTime() - QUIET_MS)
  await releaseUnwrittenTransfers(sending, before)
  const transfers = await openTransfers(sending, { before, limit: BATCH })
  for (const transfer of transfers) {
    if (signal.aborted) break
    // Another process may work on the same list; a claimed transfer moves to the end of the queue.
    const claimedAt = clock()
    if (!(await claimTransfer(database, transfer.id, before, claimedAt))) continue
    await resumeTransfer(sending, transfer).catch(async (err: unknown) => {
      log.error({ err, transferId: transfer.id }, 'finishing a transfer failed')
      // Another gateway has the key of its Safe, and would never get it while this one claims it again and again.
      if (err instanceof Failure && err.members.reason === KEY_MISSING)
        await leaveTransfer(database, transfer.id, { claimedAt, at: before })
    })
  }
  return transfers.length
}
