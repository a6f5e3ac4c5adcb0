/** Collects what owners owe for deposits that the bank took back, as soon as they have cash. */
import { collectableDeposits, collectOwed } from '../banking/take-back.ts'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import type { Database } from '../storage/database.ts'

const BATCH = 100

/** One round. What cannot be collected does not keep the rest waiting. @param signal ends it early. */
export async function collectOwedDeposits(
  { database, clock, log }: { database: Database; clock: Clock; log: Log },
  signal: AbortSignal,
): Promise<void> {
  for (const id of await collectableDeposits(database, BATCH)) {
    if (signal.aborted) return
    await collectOwed(database, { id, at: clock() }).catch((err: unknown) =>
      log.error({ err, depositId: id }, 'what is owed for a deposit cannot be collected yet'),
    )
  }
}
