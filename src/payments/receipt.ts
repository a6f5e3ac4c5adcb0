/** What a payer gets: the answer with its payment beside it, and the receipt that x402 clients read. */
import { getAddress } from 'viem'
import { decimalOfUnits } from '../money/money.ts'
import type { StoredPayment } from './store.ts'

/** Digits of every stablecoin. */
const DIGITS = 6

/** The receipt header's value, as both generations spell it. @param transaction null: it was paid and nobody saw by which. */
export function receiptOf(
  { network, payer }: Pick<StoredPayment, 'network' | 'payer'>,
  transaction: string | null,
): string {
  const receipt = { success: true, transaction: transaction ?? '', network, payer: getAddress(payer) }
  return Buffer.from(JSON.stringify(receipt)).toString('base64')
}

/** What was bought with what was paid for it. */
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
