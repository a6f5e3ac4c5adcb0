/** An order: a payment and its request. Maps orders to database rows. */
import { createHash } from 'node:crypto'
import { Failure } from '../../../core/failures/failure.ts'
import type { Chain } from '../../../providers/chain/port.ts'
import type { StoredPurchase } from '../payments/purchases.ts'
import type { NewPayment, StoredPayment } from '../payments/store.ts'
import type { Payment } from './payment.ts'
import { receiptHeaders } from './settlement-attempt.ts'

/** Latest timestamp that every database can store. */
const LATEST_SECONDS = 253_402_300_799n

/**
 * @property request method, path and input of the purchase. @property purchase idempotency key of the order, or null.
 */
export interface Order {
  readonly payment: Payment
  readonly transfer: NonNullable<Payment['transfer']>
  readonly request: string
  readonly purchase: StoredPurchase | null
}

/** @property token address of the payment token. */
interface PaymentTarget {
  readonly chain: Pick<Chain, 'name'>
  readonly token: string
}

/**
 * Requires the same request and, of the same authorization, the same signature as the stored payment.
 * @throws Failure `payment_reused`.
 */
export function requireSamePayment(order: Order, row: StoredPayment, isSameAuthorization: boolean): void {
  const isSigned = !isSameAuthorization || row.signature_hash === hashSignature(order)
  if (isSameRequest(order, row) && isSigned) return
  throw new Failure('payment_reused', 'The payment was already used for a different request.', {
    hint: 'Send the request without a payment, then pay the new challenge.',
  })
}

/** True if the order asks for what the stored payment bought. */
export function isSameRequest(order: Order, row: Pick<StoredPayment, 'request'>): boolean {
  return row.request === hashText(order.request)
}

/** Identifies an authorization: EIP-3009 and Permit2 allow each nonce once. Lower case. */
export function toPaymentKey({ chain, token }: PaymentTarget, { transfer }: Order) {
  const { from, nonce } = transfer.authorization
  return {
    chain: chain.name,
    token: token.toLowerCase(),
    payer: from.toLowerCase(),
    nonce: nonce.toLowerCase(),
  }
}

/** Hex SHA-256 of the payment signature. */
export function hashSignature({ transfer }: Order): string {
  return hashText(transfer.signature.toLowerCase())
}

function hashText(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

export function buildNewPayment(
  parts: PaymentTarget & { readonly operation: string },
  order: Order,
  { units, answer }: { units: bigint; answer: Record<string, unknown> },
  { id, sinceBlock }: { id: string; sinceBlock: bigint | null },
): NewPayment {
  const { payment, transfer, request } = order
  const validBefore = BigInt(transfer.authorization.validBefore)
  const seconds = validBefore < LATEST_SECONDS ? validBefore : LATEST_SECONDS
  return {
    id,
    ...toPaymentKey(parts, order),
    pay_to: transfer.authorization.to.toLowerCase(),
    since_block: sinceBlock,
    identifier: payment.identifier,
    request: hashText(request),
    signature_hash: hashSignature(order),
    operation: parts.operation,
    network: payment.network,
    scheme: payment.channel !== null ? 'batch-settlement' : payment.permit === null ? 'exact' : 'upto',
    receipt_header: receiptHeaders[payment.generation],
    asset: 'USDC',
    units,
    answer,
    valid_before: new Date(Number(seconds) * 1000),
  }
}

export function toStoredPayment(row: NewPayment, at: Date): StoredPayment {
  return {
    ...row,
    state: 'taking',
    transaction_hash: null,
    receipt: null,
    failure: null,
    created_at: at,
    sent_at: at,
    updated_at: at,
    reversed_at: null,
  }
}
