/**
 * Outcomes of payments that their payers sign and the gateway carries to the chain. A payer may sign two messages with one
 * nonce, and anybody may carry either: so a payment counts only where the token logged exactly its transfer for its nonce,
 * in a transaction of this gateway's.
 * @see https://eips.ethereum.org/EIPS/eip-3009
 */
import type { CalledTransaction, Chain, Hex, TransferLog } from '../providers/chain.ts'
import { isTransfer } from './operation-outcome.ts'
import { isMarked } from './transaction-mark.ts'

/** A transfer that a payment is to make. @property token the contract's address. @property nonce null for a permit's. */
export interface ExpectedPayment extends Pick<TransferLog, 'token' | 'from' | 'to' | 'units'> {
  readonly nonce: Hex | null
}

/**
 * Who carries it: this gateway, whose transactions end in a mark, or a facilitator elsewhere, whose transactions have none
 * and count from the block at which it was first asked.
 */
export type Carrier = { readonly mark: Hex } | { readonly sinceBlock: bigint }

/** `displaced`: its nonce was used by another message or another's transaction, or cancelled; it can never be paid. */
export type PaymentOutcome =
  | { readonly status: 'unused' }
  | { readonly status: 'displaced' }
  | { readonly status: 'paid'; readonly transactionHash: Hex }

/** The outcome of an EIP-3009 payment. @throws where the chain cannot be read: unknown. */
export async function paymentOutcome(
  chain: Pick<Chain, 'authorizationState' | 'transaction'>,
  payment: ExpectedPayment & { readonly nonce: Hex },
  carrier: Carrier,
): Promise<PaymentOutcome> {
  const { token, from: authorizer, nonce } = payment
  const state = await chain.authorizationState({ token, authorizer, nonce })
  if (!('transactionHash' in state)) return { status: state.status === 'unused' ? 'unused' : 'displaced' }
  const { transactionHash } = state
  const transaction = await chain.transaction(transactionHash)
  if (transaction === undefined)
    throw new Error(`The transaction ${transactionHash} that used an authorization cannot be read.`)
  return isEvidence(transaction, payment, carrier)
    ? { status: 'paid', transactionHash }
    : { status: 'displaced' }
}

/** Whether a transaction is in a block and proves a payment. @throws where the chain cannot be read: unknown. */
export async function isProvedBy(
  chain: Pick<Chain, 'transaction'>,
  payment: ExpectedPayment,
  { carrier, transactionHash }: { carrier: Carrier; transactionHash: Hex },
): Promise<boolean> {
  const transaction = await chain.transaction(transactionHash)
  return transaction !== undefined && isEvidence(transaction, payment, carrier)
}

function isEvidence(transaction: CalledTransaction, payment: ExpectedPayment, carrier: Carrier): boolean {
  return isPaidBy(transaction, payment) && isCarriedBy(transaction, carrier)
}

/** Whether a transaction made exactly this payment. */
export function isPaidBy({ succeeded, transfers }: CalledTransaction, payment: ExpectedPayment): boolean {
  const { nonce } = payment
  return (
    succeeded &&
    transfers.some(
      (log) =>
        isTransfer(log, payment) &&
        (nonce === null || log.authorization?.nonce.toLowerCase() === nonce.toLowerCase()),
    )
  )
}

function isCarriedBy(transaction: CalledTransaction, carrier: Carrier): boolean {
  return 'mark' in carrier
    ? isMarked(transaction, carrier.mark)
    : transaction.blockNumber >= carrier.sinceBlock
}
