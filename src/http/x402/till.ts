/** Takes one payment for one delivery. A ledger of payments goes around this: before it to replay, after it to remember. */
import { Failure } from '../../failure.ts'
import type { Attempt } from './attempt.ts'
import type { Payment } from './payment.ts'

/** What became of a payment. `pending`: it may have been taken, so it must never be asked for again. */
export type Taken =
  | {
      readonly status: 'paid'
      readonly delivered: Record<string, unknown>
      readonly transaction: string
      readonly network: string
      readonly payer: string
      /** The receipt header that the stock middleware made. */
      readonly receipt: { readonly name: string; readonly value: string }
    }
  | { readonly status: 'refused'; readonly reason: string }
  | { readonly status: 'pending'; readonly transaction: string | null }

const receiptHeaders = { 1: 'X-PAYMENT-RESPONSE', 2: 'PAYMENT-RESPONSE' } as const

/** Reads what became of a payment. @throws Failure `facilitator_unavailable`, and whatever delivering threw. */
export function takenOf(attempt: Attempt, payment: Payment, response: Response): Taken {
  const { delivered, deliveryError, settlement, verification } = attempt
  if (deliveryError !== null) throw deliveryError.thrown
  if (settlement?.success === true && delivered !== null) {
    const name = receiptHeaders[payment.generation]
    const value = response.headers.get(name)
    if (value === null) throw new Error('the middleware settled without a receipt')
    const { transaction, network } = settlement
    const payer = settlement.payer ?? payment.transfer?.authorization.from ?? ''
    return { status: 'paid', delivered, transaction, network, payer, receipt: { name, value } }
  }
  if (attempt.isUnknown || settlement?.errorReason === 'settlement_pending')
    return { status: 'pending', transaction: settlement?.transaction || attempt.transaction }
  if (attempt.isUnreachable) throw facilitatorUnavailable()
  const reason = settlement?.errorReason ?? verification?.invalidReason
  return { status: 'refused', reason: reason ?? 'payment_does_not_match_the_challenge' }
}

function facilitatorUnavailable(): Failure {
  return new Failure(
    'facilitator_unavailable',
    'The payment could not be checked or sent; nothing was charged.',
    {
      retryAfter: 5,
      hint: 'Send the same payment again after Retry-After seconds.',
    },
  )
}
