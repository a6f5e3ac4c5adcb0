/** The purchased answer with its payment, and the receipt that x402 clients read. */
import { getAddress } from 'viem'
import { decimalOfUnits } from '../../../core/money/money.ts'
import type { StoredPayment } from './store.ts'

/** Decimals of every stablecoin. */
const DIGITS = 6

/**
 * Builds the receipt header value, in the form shared by both x402 versions.
 * @param transaction null when paid by an unknown transaction.
 */
export function encodeReceipt(
  { network, payer }: Pick<StoredPayment, 'network' | 'payer'>,
  transaction: string | null,
): string {
  const receipt = { success: true, transaction: transaction ?? '', network, payer: getAddress(payer) }
  return Buffer.from(JSON.stringify(receipt)).toString('base64')
}

export function purchasedAnswer(payment: StoredPayment): Record<string, unknown> {
  const { id, transaction_hash, network, units, asset, payer, answer } = payment
  const paid = {
    id,
    transaction: transaction_hash ?? '',
    network,
    amount: decimalOfUnits(units, DIGITS),
    asset,
    payer: getAddress(payer),
  }
  return { ...answer, payment: paid }
}
