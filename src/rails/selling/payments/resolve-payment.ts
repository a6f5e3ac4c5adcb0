/**
 * Resolves a payment whose settlement was not observed, from the chain's evidence. A payment can never be made if
 * another message or transaction used its nonce, its payer cancelled it, or it expired unused. A payment stays
 * pending while the chain cannot be read.
 */

import {
  type Carrier,
  type ExpectedPayment,
  isProvedBy,
  isUptoProvedBy,
  type PaymentOutcome,
  paymentOutcome,
  uptoPaymentOutcome,
} from '../../../books/evidence/payment-outcome.ts'
import { transactionMark } from '../../../books/evidence/transaction-mark.ts'
import type { Clock } from '../../../core/base/clock.ts'
import type { Chain, Hex } from '../../../providers/chain/port.ts'
import type { Connection } from '../../../storage/database.ts'
import { isVoucherCharged } from './channels.ts'
import { encodeReceipt } from './receipt.ts'
import { DISPLACED, dropVoucher, failPayment, type StoredPayment, settlePayment } from './store.ts'

/** Allowed lag of block time behind our clock before an expired authorization is given up. */
const BLOCK_LAG_MS = 120_000

/**
 * A payment without a trace on the chain is given up after this time, even if its authorization stays valid longer.
 * The payer must then sign a new authorization.
 */
const GIVE_UP_MS = 10 * 60_000

/** Longer than a request keeps its channel to itself. */
const CHANNEL_KEPT_MS = 6 * 60_000

const EXPIRED = 'authorization_expired_unused'

export interface PaymentEvidenceDependencies {
  readonly chain: Pick<Chain, 'authorizationState' | 'permitState' | 'transaction'>
  readonly settings: { readonly dataKey: Uint8Array }
}

export interface PaymentResolutionDependencies extends PaymentEvidenceDependencies {
  readonly database: Connection
  readonly clock: Clock
}

export type Resolution = 'settled' | 'failed' | 'pending'

/**
 * Reads the outcome of a payment from the chain and records it.
 * @throws when the chain or the database cannot be read.
 */
export async function resolvePayment(
  dependencies: PaymentResolutionDependencies,
  payment: StoredPayment,
): Promise<Resolution> {
  const { database, clock } = dependencies
  const { id } = payment
  if (payment.scheme === 'batch-settlement') return resolveVoucher(dependencies, payment)
  const outcome = await readOutcome(dependencies, payment)
  if (outcome.status === 'paid') {
    const { transactionHash: transaction } = outcome
    await settlePayment(database, {
      id,
      transaction,
      receipt: encodeReceipt(payment, transaction),
      at: clock(),
    })
    return 'settled'
  }
  const validMs = Math.min(payment.valid_before.getTime(), payment.sent_at.getTime() + GIVE_UP_MS)
  const isOver = clock().getTime() >= validMs + BLOCK_LAG_MS
  if (outcome.status === 'unused' && !isOver) return 'pending'
  const failure = outcome.status === 'unused' ? EXPIRED : DISPLACED
  await failPayment(database, { id, failure, at: clock() })
  return 'failed'
}

/** The voucher's outcome is in the database: its channel was charged, or was not. */
async function resolveVoucher(
  { database, clock }: Pick<PaymentResolutionDependencies, 'database' | 'clock'>,
  payment: StoredPayment,
): Promise<Resolution> {
  const { id, sent_at } = payment
  if (await isVoucherCharged(database, payment)) {
    const receipt = encodeReceipt(payment, payment.transaction_hash)
    await settlePayment(database, { id, transaction: null, receipt, at: clock() })
    return 'settled'
  }
  if (clock().getTime() < sent_at.getTime() + CHANNEL_KEPT_MS) return 'pending'
  await dropVoucher(database, id)
  return 'failed'
}

/**
 * Reads the outcome of a payment.
 * @param transaction hash of the transaction that supposedly paid it.
 * @throws when the chain cannot be read.
 */
export async function readOutcome(
  { chain, settings }: PaymentEvidenceDependencies,
  payment: StoredPayment,
  transaction: string | null = payment.transaction_hash,
): Promise<PaymentOutcome> {
  const expected = toExpected(payment)
  const transactionHash = transaction === null ? null : hex(transaction)
  const carrier: Carrier =
    payment.since_block === null
      ? { mark: transactionMark(settings.dataKey, payment.id) }
      : { sinceBlock: payment.since_block }
  const isUpto = payment.scheme === 'upto'
  const prove = isUpto ? isUptoProvedBy : isProvedBy
  if (transactionHash !== null && (await prove(chain, expected, { carrier, transactionHash })))
    return { status: 'paid', transactionHash }
  return isUpto ? uptoPaymentOutcome(chain, expected, carrier) : paymentOutcome(chain, expected, carrier)
}

function toExpected({
  token,
  payer,
  pay_to,
  nonce,
  units,
}: StoredPayment): ExpectedPayment & { readonly nonce: Hex } {
  return { token: hex(token), from: hex(payer), to: hex(pay_to), nonce: hex(nonce), units }
}

function hex(text: string): Hex {
  return `0x${text.slice(2)}`
}
