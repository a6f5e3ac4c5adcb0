/** Tables of `sql/migrations/0001-baseline/09-payments.sql`: x402 payments and documentation feedback. */
import type { Generated } from 'kysely'
import type { JsonColumn } from './schema.ts'

/**
 * A signed authorization and its purchase. `taking`: an instance is processing it. `pending`: it may have been paid.
 * Addresses, nonce and token are lower case.
 */
export interface PaymentTable {
  id: string
  chain: string
  token: string
  payer: string
  nonce: string
  pay_to: string
  /** Null if the gateway settles it itself. */
  since_block: bigint | null
  identifier: string | null
  request: string
  signature_hash: string
  operation: string
  network: string
  receipt_header: string
  asset: string
  units: bigint
  answer: JsonColumn<Record<string, unknown>>
  state: Generated<'taking' | 'pending' | 'settled' | 'failed'>
  transaction_hash: string | null
  receipt: string | null
  failure: string | null
  valid_before: Date
  created_at: Date
  sent_at: Date
  updated_at: Date
  /** Time of the reversal after a reorganization; null if it stands. */
  reversed_at: Generated<Date | null>
}

/** Usage record: one row per settled payment, written by the database function. */
export interface MeteringTable {
  payment_id: string
  operation: string
  payer: string
  asset: string
  units: bigint
  at: Date
}

/** Feedback counters per documentation page; no data about readers. */
export interface DocsFeedbackTable {
  page: string
  up: bigint
  down: bigint
}
