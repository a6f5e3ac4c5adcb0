/** Finds out what became of payments that a crash, a lost connection or a slow chain left open. Asks the chain; never goes by time alone. */
import type { Log } from '../base/log.ts'
import { type PaymentResolutionDependencies, resolvePayment } from '../payments/resolve-payment.ts'
import { claimPayment, openPayments } from '../payments/store.ts'

/** How often one payment is looked into. */
const QUIET_MS = 1_000
/** Longer than any process that lives has a payment in hand. */
const ABANDONED_MS = 15_000
const BATCH = 100

/** One round. A payment that cannot be looked into does not keep the others waiting. @param signal ends the round early. */
export async function settlePayments(
  resolving: PaymentResolutionDependencies & { readonly log: Log },
  signal: AbortSignal,
): Promise<void> {
  const { database, clock, log } = resolving
  const now = clock().getTime()
  const due = { before: new Date(now - QUIET_MS), abandoned: new Date(now - ABANDONED_MS), limit: BATCH }
  for (const payment of await openPayments(database, due)) {
    if (signal.aborted) return
    if (!(await claimPayment(database, payment, clock()))) continue
    await resolvePayment(resolving, payment).catch((err: unknown) =>
      log.error({ err, paymentId: payment.id }, 'a payment cannot be looked into yet'),
    )
  }
}
