/** A payment with what it was sent for, and the row that it is kept as. */
import { createHash } from 'node:crypto'
import { Failure } from '../failures/failure.ts'
import type { StoredPurchase } from '../payments/purchases.ts'
import type { NewPayment, StoredPayment } from '../payments/store.ts'
import type { Chain } from '../providers/chain.ts'
import type { Payment } from './payment.ts'
import { receiptHeaders } from './till.ts'

/** The last moment that every store can hold. */
const LATEST_SECONDS = 253_402_300_799n

/**
 * A payment that was sent for something. @property request what for: its method, path and input. @property purchase the
 * idempotency key that it was sent under; null: none.
 */
export interface Order {
  readonly payment: Payment
  readonly transfer: NonNullable<Payment['transfer']>
  readonly request: string
  readonly purchase: StoredPurchase | null
}

/** Where it is paid. @property token address of what is paid with. */
interface Till {
  readonly chain: Pick<Chain, 'name'>
  readonly token: string
}

/** What was sent before must be the same thing for the same thing. @throws Failure `payment_reused`. */
export function requireSame(order: Order, row: StoredPayment, nonce: string): void {
  const isSigned = row.nonce !== nonce || row.signature_hash === signatureHashOf(order)
  if (row.request === hashOf(order.request) && isSigned) return
  throw new Failure('payment_reused', 'The payment was used for another request; it pays for one alone.', {
    hint: 'Ask without a payment, and pay the new challenge.',
  })
}

/** What makes its authorization the same one: EIP-3009 spends its nonce once. Lower case. */
export function keyOf({ chain, token }: Till, { transfer }: Order) {
  const { from, nonce } = transfer.authorization
  return {
    chain: chain.name,
    token: token.toLowerCase(),
    payer: from.toLowerCase(),
    nonce: nonce.toLowerCase(),
  }
}

/** SHA-256 of the signature that pays, hex. */
export function signatureHashOf({ transfer }: Order): string {
  return hashOf(transfer.signature.toLowerCase())
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** The row of an order that is about to be taken. */
export function newPaymentOf(
  parts: Till & { readonly operation: string },
  order: Order,
  { units, answer }: { units: bigint; answer: Record<string, unknown> },
  { id, sinceBlock }: { id: string; sinceBlock: bigint | null },
): NewPayment {
  const { payment, transfer, request } = order
  const validBefore = BigInt(transfer.authorization.validBefore)
  const seconds = validBefore < LATEST_SECONDS ? validBefore : LATEST_SECONDS
  return {
    id,
    ...keyOf(parts, order),
    pay_to: transfer.authorization.to.toLowerCase(),
    since_block: sinceBlock,
    identifier: payment.identifier,
    request: hashOf(request),
    signature_hash: signatureHashOf(order),
    operation: parts.operation,
    network: payment.network,
    receipt_header: receiptHeaders[payment.generation],
    asset: 'USDC',
    units,
    answer,
    valid_before: new Date(Number(seconds) * 1000),
  }
}

/** The row as it is once it is written down. */
export function stored(row: NewPayment, at: Date): StoredPayment {
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
