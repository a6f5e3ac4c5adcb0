/** What the caller of a transfer that came to nothing is told, the first time and every time after. */
import { Failure } from '../../failures/failure.ts'
import type { FailureCode } from '../store.ts'

/** A transfer that the chain did not execute and never will. */
export function failedTransfer(
  transferId: string,
  { failure, code }: { failure: string; code: FailureCode },
): Failure {
  const members = { isFinal: true }
  if (code === 'signature_rejected')
    return new Failure(
      code,
      `The chain did not take the authorization of transfer ${transferId}: ${failure}. Nothing moved; the money is free again.`,
      {
        ...members,
        hint: 'Get a new intent with POST /api/wallets/transfer/intent and sign it; for an agent, let the owner of the wallet raise its allowance with POST /api/wallets/allowances.',
      },
    )
  return new Failure(
    code,
    `The chain did not execute transfer ${transferId}: ${failure}. Nothing moved; the money is free again.`,
    { ...members, hint: 'Send it again with a new idempotency key.' },
  )
}

/** A payment that was allowed and whose process ended before it was sent. */
export function transferNeverSubmitted(): Failure {
  return new Failure(
    'provider_unavailable',
    'The payment was allowed and then never sent. Nothing moved; the money is free again.',
    { isFinal: true, hint: 'Send it again with a new idempotency key.' },
  )
}

/** Of two calls with one intent, the one that came second. */
export function intentUsed(): Failure {
  return new Failure('signature_rejected', 'This intent was used already; nothing was sent.', {
    isFinal: true,
    hint: 'Get a new intent with POST /api/wallets/transfer/intent and sign it.',
  })
}
