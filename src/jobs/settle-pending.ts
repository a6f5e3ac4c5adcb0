/** Finishes transfers that a crash, a lost connection or a slow chain left open. Asks the chain; never goes by time alone. */

import { claimTransfer, openTransfers } from '../wallets/store.ts'
import { releaseOrphans } from '../wallets/transfers/release-orphans.ts'
import { resumeTransfer } from '../wallets/transfers/resume-transfer.ts'
import type { TransferDependencies } from '../wallets/transfers/send-transfer.ts'

/** A transfer that was touched more recently may still be in the hands of the request that made it. */
const QUIET_MS = 5_000
const BATCH = 100

/** One round. A transfer that cannot be finished does not keep the others waiting. @param signal ends the round early. */
export async function settlePending(sending: TransferDependencies, signal: AbortSignal): Promise<void> {
  const { database, clock, log } = sending
  const before = new Date(clock().getTime() - QUIET_MS)
  await releaseOrphans(sending, before)
  for (const transfer of await openTransfers(database, before, BATCH)) {
    if (signal.aborted) return
    // Another process may have the same list; and whoever was tried goes to the end of the next one.
    if (!(await claimTransfer(database, transfer.id, before, clock()))) continue
    await resumeTransfer(sending, transfer).catch((err: unknown) =>
      log.error({ err, transferId: transfer.id }, 'a transfer cannot be finished yet'),
    )
  }
}
