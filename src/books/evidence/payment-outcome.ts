/**
 * Outcomes of payments that payers sign and the gateway submits to the chain. A payer may sign two messages with one
 * nonce, and anyone may submit either. A payment therefore counts only if the token logged exactly its transfer for
 * its nonce, in a transaction of this gateway.
 * @see https://eips.ethereum.org/EIPS/eip-3009
 */
import type { CalledTransaction, Chain, Hex, TransferLog } from '../../providers/chain/port.ts'
import { isTransfer } from './operation-outcome.ts'
import { isMarked } from './transaction-mark.ts'

/** The transfer a payment must make. @property token contract address. @property nonce null for a permit. */
export interface ExpectedPayment extends Pick<TransferLog, 'token' | 'from' | 'to' | 'units'> {
  readonly nonce: Hex | null
}

/**
 * The submitter of a payment: this gateway, whose transactions end in a mark, or an external facilitator, whose
 * transactions carry no mark and count from the block of the first request to it.
 */
export type Carrier = { readonly mark: Hex } | { readonly sinceBlock: bigint }

/** `displaced`: the nonce was cancelled, or used by another message or transaction; the payment can never be made. */
export type PaymentOutcome =
  | { readonly status: 'unused' }
  | { readonly status: 'displaced' }
  | { readonly status: 'paid'; readonly transactionHash: Hex }

/** Reads the outcome of an EIP-3009 payment. @throws when the chain cannot be read. */
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

/**
 * Reads the outcome of a payment by the scheme `upto`, of what is taken. Only this gateway may settle it, and its payer may make several:
 * the mark tells them apart. @throws when the chain cannot be read.
 */
export async function uptoPaymentOutcome(
  chain: Pick<Chain, 'permitState' | 'transaction'>,
  payment: ExpectedPayment & { readonly nonce: Hex },
  carrier: Carrier,
): Promise<PaymentOutcome> {
  const { token, from: owner, to, nonce } = payment
  const state = await chain.permitState({ token, owner, to, nonce })
  if (state.status === 'invalidated') return { status: 'displaced' }
  // The payer's own permits are not ours to judge.
  if (state.status !== 'used') return { status: 'unused' }
  for (const transactionHash of state.transactionHashes)
    if (await isUptoProvedBy(chain, payment, { carrier, transactionHash }))
      return { status: 'paid', transactionHash }
  throw new Error(`The settlement of the Permit2 nonce ${nonce} was not found.`)
}

/** Checks that a transaction is in a block and proves a payment by the scheme `upto`. @throws when the chain cannot be read. */
export async function isUptoProvedBy(
  chain: Pick<Chain, 'transaction'>,
  payment: ExpectedPayment,
  { carrier, transactionHash }: { carrier: Carrier; transactionHash: Hex },
): Promise<boolean> {
  const transaction = await chain.transaction(transactionHash)
  return (
    transaction?.succeeded === true &&
    transaction.transfers.some((log) => log.isUpto && isTransfer(log, payment)) &&
    isCarriedBy(transaction, carrier)
  )
}

/** Checks that a transaction is in a block and proves a payment. @throws when the chain cannot be read. */
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
