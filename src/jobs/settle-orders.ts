/** Carries open orders on: books what the broker filled, ends what it ended, places what a crash kept from it. */
import { raiseAlarm } from '../alarms/alarms.ts'
import { Failure } from '../failures/failure.ts'
import type { InvestingDependencies } from '../investing/order.ts'
import { releaseUnplaced } from '../investing/release-unplaced.ts'
import { resumeOrder } from '../investing/resume-order.ts'
import { requestStoppedCancels } from '../investing/stopped-orders.ts'
import { claimOpenOrders } from '../investing/store.ts'

/** An order that was touched more recently may still be in the hands of the request that made it. */
const QUIET_MS = 1_500
/** A reservation may be about to get its order. */
const ORPHANED_MS = 10_000
const BATCH = 100

/** One round. An order that cannot be carried on does not keep the others waiting. @param signal ends the round early. */
export async function settleOrders(investing: InvestingDependencies, signal: AbortSignal): Promise<void> {
  const { database, clock, log } = investing
  const now = clock()
  await requestStoppedCancels(database, now)
  await releaseUnplaced(investing, new Date(now.getTime() - ORPHANED_MS))
  const before = new Date(now.getTime() - QUIET_MS)
  for (const order of await claimOpenOrders(database, { before, at: now, limit: BATCH })) {
    if (signal.aborted) return
    await resumeOrder(investing, order).catch(async (err: unknown) => {
      log.warn({ err, orderId: order.id }, 'an order cannot be carried on yet')
      if (err instanceof Failure) return
      // It would fail the same way for ever.
      const reported = { message: err instanceof Error ? err.message : String(err) }
      const alarm = { domain: 'investing', objectId: order.id, reason: 'cannot_be_booked', reported } as const
      await raiseAlarm({ database, log }, { ...alarm, at: clock() })
    })
  }
}
