/** Errors for transfers that failed permanently, the same for the first call and every repeat. */
import { Failure } from '../../../core/failures/failure.ts'
import type { TransferFailureCode } from '../store.ts'

/** Error for a transfer that the chain did not execute and never will. */
export function failedTransfer(
  transferId: string,
  { failure, code }: { failure: string; code: TransferFailureCode },
): Failure {
  const members = { isFinal: true }
  if (code === 'signature_rejected')
    return new Failure(
      code,
      `The chain rejected the authorization of transfer ${transferId}: ${failure}. Nothing moved; the money is available again.`,
      {
        ...members,
        hint: 'An agent tells the wallet’s owner, who sets its allowance; it never splits the payment. A person gets a new intent with POST /api/wallets/transfer/intent and signs it.',
      },
    )
  return new Failure(
    code,
    `The chain did not execute transfer ${transferId}: ${failure}. Nothing moved; the money is available again.`,
    { ...members, hint: 'Send it again with a new idempotency key.' },
  )
}

/** Error for an allowed payment whose process ended before sending it. */
export function transferNeverSubmitted(): Failure {
  return new Failure(
    'provider_unavailable',
    'The payment was allowed but never sent. Nothing moved; the money is available again.',
    { isFinal: true, hint: 'Send it again with a new idempotency key.' },
  )
}

/** Error for the second of two calls with one intent. */
export function intentUsed(): Failure {
  return new Failure('signature_rejected', 'This intent was already used; nothing was sent.', {
    isFinal: true,
    hint: 'Get a new intent with POST /api/wallets/transfer/intent and sign it.',
  })
}
