/** Ends payments whose money does not arrive: its burn has failed, or it takes too long. Arrivals are booked by `settle-swaps`. */
import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import { explainLostMove, failFunding, findLostFundings } from '../../rails/swaps/fundings.ts'
import type { Database } from '../../storage/database.ts'

const BATCH = 50
const TOO_LATE = 'its money did not arrive in time'

/** Runs one round. @param signal stops the round early. */
export async function settleFundings(
  {
    database,
    clock,
    log,
    onCalendar,
  }: {
    readonly database: Database
    readonly clock: Clock
    readonly log: Log
    readonly onCalendar: (at: Date) => Date
  },
  signal: AbortSignal,
): Promise<number> {
  const at = clock()
  const lost = await findLostFundings(database, { calendar: onCalendar(at), limit: BATCH })
  for (const { fundingId, burn } of lost) {
    if (signal.aborted) break
    const reason = burn === null ? TOO_LATE : explainLostMove(burn.failure)
    const code = burn?.code ?? 'provider_unavailable'
    if (await failFunding(database, { fundingId, failure: reason, code, at }))
      log.warn({ fundingId, reason }, 'a payment ended unpaid because its money did not arrive')
  }
  return lost.length
}
