/** Finishes transfers that a crash, a lost connection or a slow chain left open. Asks the chain; never goes by time alone. */

import { releaseOrphans } from '../wallets/release-orphans.ts'
import { resumeTransfer } from '../wallets/resume-transfer.ts'
import type { Sending } from '../wallets/send-transfer.ts'
import { openTransfers } from '../wallets/store.ts'

/** A transfer that was touched more recently may still be in the hands of the request that made it. */
const QUIET_MS = 5_000
const BATCH = 100

/** One round. */
export async function settlePending(sending: Sending): Promise<void> {
  const before = new Date(sending.clock().getTime() - QUIET_MS)
  for (const transfer of await openTransfers(sending.database, before, BATCH))
    await resumeTransfer(sending, transfer)
  await releaseOrphans(sending, before)
}
