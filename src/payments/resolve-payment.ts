/**
 * What became of a payment whose settlement was not seen: the chain's evidence tells. One whose nonce another message or
 * another's transaction used, that its payer cancelled, or that is unspent after its time, can never be paid. Whatever
 * cannot be read stays pending.
 */
import type { Clock } from '../base/clock.ts'
import {
  type Carrier,
  type ExpectedPayment,
  isProvedBy,
  type PaymentOutcome,
  paymentOutcome,
} from '../evidence/payment-outcome.ts'
import { transactionMark } from '../evidence/transaction-mark.ts'
import type { Chain, Hex } from '../providers/chain.ts'
import type { Connection } from '../storage/database.ts'
import { receiptOf } from './receipt.ts'
import { failPayment, type StoredPayment, settlePayment } from './store.ts'

/** A block's time may lag behind ours: so long after its end an authorization is not given up yet. */
const BLOCK_LAG_MS = 120_000

/**
 * After so long without a trace of it on the chain a payment is given up, however long its payer lets it be valid: only the
 * payer sends it again, and is then asked to sign anew.
 */
const GIVEN_UP_MS = 10 * 60_000

/** The authorization was not used in its time. */
const EXPIRED = 'authorization_expired_unused'

/** The authorization's nonce is spent, and not on this payment. */
const DISPLACED = 'authorization_used_otherwise_or_canceled'

/** What the outcome of a payment follows from. */
export interface PaymentEvidenceDependencies {
  readonly chain: Pick<Chain, 'authorizationState' | 'transaction'>
  readonly settings: { readonly dataKey: Uint8Array }
}

/** What resolving needs. */
export interface PaymentResolutionDependencies extends PaymentEvidenceDependencies {
  readonly database: Connection
  readonly clock: Clock
}

/** What is known now. */
export type Resolution = 'settled' | 'failed' | 'pending'

/** Asks the chain about one payment and writes down what it says. @throws where the chain or the database cannot be asked. */
export async function resolvePayment(
  resolving: PaymentResolutionDependencies,
  payment: StoredPayment,
): Promise<Resolution> {
  const { database, clock } = resolving
  const { id } = payment
  const outcome = await outcomeOf(resolving, payment)
  if (outcome.status === 'paid') {
    const { transactionHash: transaction } = outcome
    await settlePayment(database, { id, transaction, receipt: receiptOf(payment, transaction), at: clock() })
    return 'settled'
  }
  const validMs = Math.min(payment.valid_before.getTime(), payment.sent_at.getTime() + GIVEN_UP_MS)
  const isOver = clock().getTime() >= validMs + BLOCK_LAG_MS
  if (outcome.status === 'unused' && !isOver) return 'pending'
  const failure = outcome.status === 'unused' ? EXPIRED : DISPLACED
  await failPayment(database, { id, failure, at: clock() })
  return 'failed'
}

/** The outcome of a payment. @param transaction that is said to have paid it. @throws where the chain cannot be read. */
export async function outcomeOf(
  { chain, settings }: PaymentEvidenceDependencies,
  payment: StoredPayment,
  transaction: string | null = payment.transaction_hash,
): Promise<PaymentOutcome> {
  const expected = expectedOf(payment)
  const transactionHash = transaction === null ? null : hex(transaction)
  const carrier: Carrier =
    payment.since_block === null
      ? { mark: transactionMark(settings.dataKey, payment.id) }
      : { sinceBlock: payment.since_block }
  if (transactionHash !== null && (await isProvedBy(chain, expected, { carrier, transactionHash })))
    return { status: 'paid', transactionHash }
  return paymentOutcome(chain, expected, carrier)
}

function expectedOf({
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
