/**
 * Resumes open orders: books fills, closes orders that the broker ended, and places orders that a crash kept from the
 * broker.
 */
import { raiseAlarm } from '../../books/alarms/alarms.ts'
import { releaseOrphans } from '../../books/spending/orphans.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { InvestingDependencies } from '../../rails/investing/order.ts'
import { resumeOrder } from '../../rails/investing/resume-order.ts'
import { requestStoppedCancels } from '../../rails/investing/stopped-orders.ts'
import { claimOpenOrders } from '../../rails/investing/store.ts'

/** A more recently updated order may still be handled by its request. */
const QUIET_MS = 1_500
/** A newer reservation may still get its order. */
const ORPHANED_MS = 10_000
const BATCH = 100

/** Runs one round. A failing order does not block the others. @param signal stops the round early. */
export async function settleOrders(investing: InvestingDependencies, signal: AbortSignal): Promise<number> {
  const { database, clock, log } = investing
  const now = clock()
  await requestStoppedCancels(database, now)
  await releaseOrphans(investing, {
    operations: ['investing.order'],
    tables: ['investing_order'],
    before: new Date(now.getTime() - ORPHANED_MS),
  })
  const before = new Date(now.getTime() - QUIET_MS)
  const orders = await claimOpenOrders(database, { before, at: now, limit: BATCH })
  for (const order of orders) {
    if (signal.aborted) break
    await resumeOrder(investing, order).catch(async (err: unknown) => {
      log.warn({ err, orderId: order.id }, 'resuming an order failed')
      if (err instanceof Failure) return
      // An unexpected error would repeat forever.
      const reported = { message: err instanceof Error ? err.message : String(err) }
      const alarm = { domain: 'investing', objectId: order.id, reason: 'cannot_be_booked', reported } as const
      await raiseAlarm({ database, log }, { ...alarm, at: clock() })
    })
  }
  return orders.length
}
