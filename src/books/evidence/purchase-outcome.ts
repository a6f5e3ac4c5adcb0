/**
 * Outcomes of payments that this gateway signs and strangers submit. The stranger's transaction only says where to look: what
 * counts is the token's own log of exactly this transfer, directly behind the use of this nonce. An authorization is over
 * only when a block shows it unused after its last moment, or cancelled.
 * @see https://eips.ethereum.org/EIPS/eip-3009
 */
import type { Chain, Hex } from '../../providers/chain/port.ts'
import { type ExpectedPayment, isProvedBy, paymentOutcome } from './payment-outcome.ts'

/**
 * `open`: it may still be paid. `canceling`: so it may, if the block of its cancellation is replaced. `expired`, `canceled`: it
 * never will be.
 */
export type PurchaseOutcome =
  | { readonly status: 'open' | 'canceling' | 'expired' | 'canceled' }
  | { readonly status: 'settled'; readonly transactionHash: Hex }

export interface SignedPurchase extends ExpectedPayment {
  readonly nonce: Hex
  readonly validBefore: Date
}

export type PurchaseChain = Pick<Chain, 'authorizationState' | 'isAuthorizationOver' | 'transaction'>

/**
 * @param hint transaction hash that the seller names; null without one.
 * @throws when the chain cannot be read, or shows another use of the nonce: the outcome is unknown.
 */
export async function purchaseOutcome(
  chain: PurchaseChain,
  purchase: SignedPurchase,
  hint: Hex | null = null,
): Promise<PurchaseOutcome> {
  const { token, from: authorizer, nonce, validBefore } = purchase
  // The nonce is this payment's alone, in any block.
  const carrier = { sinceBlock: 0n }
  if (hint !== null) {
    const isProved = await isProvedBy(chain, purchase, { carrier, transactionHash: hint }).catch(() => false)
    if (isProved) return { status: 'settled', transactionHash: hint }
  }
  const paid = await paymentOutcome(chain, purchase, carrier)
  if (paid.status === 'paid') return { status: 'settled', transactionHash: paid.transactionHash }
  const authorization = { token, authorizer, nonce }
  const isOver = await chain.isAuthorizationOver(authorization, validBefore)
  if (paid.status === 'unused') return { status: isOver ? 'expired' : 'open' }
  const { status } = await chain.authorizationState(authorization)
  if (status !== 'canceled') throw new Error(`The authorization ${nonce} was used for something else.`)
  return { status: isOver ? 'canceled' : 'canceling' }
}
