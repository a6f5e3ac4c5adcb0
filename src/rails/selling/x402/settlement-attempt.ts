/** Derives the settlement result from one run through a stock middleware. `payment-deduplication.ts` wraps it. */
import { Failure } from '../../../core/failures/failure.ts'
import type { Attempt } from './attempt.ts'
import type { Payment } from './payment.ts'

/** `pending` payments may have been made, so they must never be requested again. */
export type SettlementAttempt =
  | { readonly status: 'paid'; readonly transaction: string | null; readonly receipt: string }
  /** @property isSent the facilitator was called to settle. @property transaction hash it reported despite refusing. */
  | {
      readonly status: 'refused'
      readonly reason: string
      readonly isSent: boolean
      readonly transaction: string | null
      /** State of the payment's channel, for a client whose own is behind. */
      readonly correction: Readonly<Record<string, unknown>> | null
    }
  | { readonly status: 'pending'; readonly transaction: string | null }

/** Settlement errors after which a transaction may still be pending. */
const uncertainReasons: ReadonlySet<string> = new Set(['settlement_pending', 'unexpected_settle_error'])

/** Receipt headers, by generation. */
export const receiptHeaders = { 1: 'X-PAYMENT-RESPONSE', 2: 'PAYMENT-RESPONSE' } as const

/** @throws Failure `facilitator_unavailable` when certainly nothing was sent, and errors of `deliver`. */
export function toSettlementAttempt(
  attempt: Attempt,
  { generation }: Pick<Payment, 'generation'>,
  response: Response,
): SettlementAttempt {
  const { deliveryError, settling, settlement, verification } = attempt
  if (deliveryError !== null) throw deliveryError.thrown
  if (settlement?.success === true) {
    const receipt = response.headers.get(receiptHeaders[generation])
    if (receipt !== null) return { status: 'paid', transaction: settlement.transaction || null, receipt }
  }
  const transaction = settlement?.transaction || attempt.transaction
  const isOpen = settlement?.success === true || uncertainReasons.has(settlement?.errorReason ?? '')
  if (attempt.isUnknown || isOpen) return { status: 'pending', transaction }
  if (attempt.isUnreachable) throw facilitatorUnavailable()
  const reason = settlement?.errorReason ?? verification?.invalidReason
  return {
    status: 'refused',
    reason: reason ?? 'payment_does_not_match_the_challenge',
    isSent: settling !== null,
    transaction: transaction || null,
    correction: attempt.correction,
  }
}

/** Error for a payment that was neither checked nor sent. */
export function facilitatorUnavailable(): Failure {
  return new Failure(
    'facilitator_unavailable',
    'The payment could not be checked or sent; nothing was charged.',
    {
      retryAfter: 5,
      hint: 'Send the same payment again after Retry-After seconds.',
    },
  )
}
