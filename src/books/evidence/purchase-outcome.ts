/**
 * Outcomes of payments that this gateway signs and strangers submit. The stranger's transaction only says where to look: what
 * counts is the token's own log of exactly this transfer, directly behind the use of this nonce, or directly before the log of the
 * `upto` proxy. A payment is over only when a block shows it unused after its last moment, or cancelled.
 * @see https://eips.ethereum.org/EIPS/eip-3009
 */
import type { Chain, Hex } from '../../providers/chain/port.ts'
import { escrowCollectorAddress } from '../../providers/payment-escrow.ts'
import { isTransfer } from './operation-outcome.ts'
import { type ExpectedPayment, isProvedBy, paymentOutcome } from './payment-outcome.ts'

/**
 * `open`: it may still be paid. `canceling`: so it may, if the block of its cancellation is replaced. `expired`, `canceled`: it
 * never will be. `escrowed`: it is in escrow, or was moved there in a block that may be replaced.
 */
export type PurchaseOutcome =
  | { readonly status: 'open' | 'canceling' | 'escrowed' | 'expired' | 'canceled' }
  /** @property units what was paid. */
  | { readonly status: 'settled'; readonly transactionHash: Hex; readonly units: bigint }

/**
 * @property units the price; of `upto` and `auth-capture`, the most that may be paid. @property escrowHash hash of the payment in escrow, of
 * `auth-capture`.
 */
export interface SignedPurchase extends ExpectedPayment {
  readonly scheme: 'exact' | 'upto' | 'auth-capture'
  readonly escrowHash?: Hex
  readonly nonce: Hex
  readonly validBefore: Date
}

export type PurchaseChain = Pick<
  Chain,
  | 'authorizationState'
  | 'isAuthorizationOver'
  | 'permitState'
  | 'isPermitOver'
  | 'escrowState'
  | 'transaction'
>

/**
 * @param hint transaction hash that the seller names; null without one.
 * @throws when the chain cannot be read, or shows another use of the nonce: the outcome is unknown.
 */
export async function purchaseOutcome(
  chain: PurchaseChain,
  purchase: SignedPurchase,
  hint: Hex | null = null,
): Promise<PurchaseOutcome> {
  if (purchase.scheme === 'upto') return uptoOutcome(chain, purchase)
  if (purchase.scheme === 'auth-capture') return escrowOutcome(chain, purchase)
  const { token, from: authorizer, units, nonce, validBefore } = purchase
  // The nonce is this payment's alone, in any block.
  const carrier = { sinceBlock: 0n }
  if (hint !== null) {
    const isProved = await isProvedBy(chain, purchase, { carrier, transactionHash: hint }).catch(() => false)
    if (isProved) return { status: 'settled', transactionHash: hint, units }
  }
  const paid = await paymentOutcome(chain, purchase, carrier)
  if (paid.status === 'paid') return { status: 'settled', transactionHash: paid.transactionHash, units }
  const authorization = { token, authorizer, nonce }
  const isOver = await chain.isAuthorizationOver(authorization, validBefore)
  if (paid.status === 'unused') return { status: isOver ? 'expired' : 'open' }
  const { status } = await chain.authorizationState(authorization)
  if (status !== 'canceled') throw new Error(`The authorization ${nonce} was used for something else.`)
  return { status: isOver ? 'canceled' : 'canceling' }
}

/**
 * Permit2 logs nothing about its nonces, and any amount up to the maximum may be taken. The payer's address signs for this purchase
 * alone, so that the proxy's transfer from it to the payee is this payment, and its amount is the price.
 */
async function uptoOutcome(chain: PurchaseChain, purchase: SignedPurchase): Promise<PurchaseOutcome> {
  const { token, from, to, units: maximum, nonce, validBefore } = purchase
  const permit = { token, owner: from, to, nonce }
  const state = await chain.permitState(permit)
  if (state.status === 'used') {
    const [transactionHash] = state.transactionHashes
    const transaction = await chain.transaction(transactionHash)
    const moved = transaction?.transfers.find(
      (log) => log.isUpto && log.units <= maximum && isTransfer(log, { token, from, to, units: log.units }),
    )
    if (transaction?.succeeded !== true || moved === undefined)
      throw new Error(`The settlement of the Permit2 nonce ${nonce} in ${transactionHash} cannot be read.`)
    return { status: 'settled', transactionHash, units: moved.units }
  }
  if (state.status === 'invalidated') throw new Error(`The Permit2 nonce ${nonce} was invalidated.`)
  const isOver = await chain.isPermitOver(permit, validBefore)
  if (state.status === 'unused') return { status: isOver ? 'expired' : 'open' }
  return { status: isOver ? 'canceled' : 'canceling' }
}

/**
 * The nonce is the hash of the payment's terms, and only the escrow's collector can use it. What is paid is what the escrow shows as captured
 * and not given back, once nothing is left in it, in a block that can no longer change.
 */
async function escrowOutcome(
  chain: PurchaseChain,
  { token, from, units, nonce, validBefore, escrowHash }: SignedPurchase,
): Promise<PurchaseOutcome> {
  const authorization = { token, authorizer: from, nonce }
  const state = await chain.authorizationState(authorization)
  if (state.status !== 'used') {
    const isOver = await chain.isAuthorizationOver(authorization, validBefore)
    if (state.status === 'unused') return { status: isOver ? 'expired' : 'open' }
    return { status: isOver ? 'canceled' : 'canceling' }
  }
  if (escrowHash === undefined) throw new Error(`The payment ${nonce} names no escrow.`)
  const { isCollected, capturable, refundable } = await chain.escrowState(escrowHash, 'final')
  if (!isCollected || capturable > 0n) return { status: 'escrowed' }
  const { transactionHash } = state
  const payment = { token, from, to: escrowCollectorAddress, units, nonce }
  if (!(await isProvedBy(chain, payment, { carrier: { sinceBlock: 0n }, transactionHash })))
    throw new Error(`The authorization ${nonce} was used for something else.`)
  return { status: 'settled', transactionHash, units: refundable }
}
