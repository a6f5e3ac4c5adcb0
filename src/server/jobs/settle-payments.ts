/**
 * Resolves payments that a crash, a lost connection or a slow chain left open. Outcomes come from the chain, never
 * from elapsed time alone.
 */
import type { Log } from '../../core/base/log.ts'
import {
  type PaymentResolutionDependencies,
  resolvePayment,
} from '../../rails/selling/payments/resolve-payment.ts'
import { claimPayment, openPayments } from '../../rails/selling/payments/store.ts'

/** Minimum interval between checks of one payment. */
const QUIET_MS = 1_000
/** Longer than a live process works on a payment. */
const ABANDONED_MS = 15_000
const BATCH = 100

/** Runs one round. A failing payment does not block the others. @param signal stops the round early. */
export async function settlePayments(
  resolving: PaymentResolutionDependencies & {
    readonly chain: { readonly name: string }
    readonly log: Log
  },
  signal: AbortSignal,
): Promise<number> {
  const { database, clock, log } = resolving
  const now = clock().getTime()
  const due = { before: new Date(now - QUIET_MS), abandoned: new Date(now - ABANDONED_MS), limit: BATCH }
  const payments = await openPayments(resolving, due)
  for (const payment of payments) {
    if (signal.aborted) break
    if (!(await claimPayment(database, payment, clock()))) continue
    await resolvePayment(resolving, payment).catch((err: unknown) =>
      log.error({ err, paymentId: payment.id }, 'resolving a payment failed'),
    )
  }
  return payments.length
}
