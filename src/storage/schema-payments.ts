/** The tables of `sql/migrations/0001-baseline/09-payments.sql` as Kysely sees them: what strangers pay for, and what they say of the documentation. */
import type { Generated } from 'kysely'
import type { JsonColumn } from './schema.ts'

/** One signed authorization and what it buys. `taking`: somebody has it in hand. `pending`: it may have been paid. Addresses, nonce and token are lower case. */
export interface PaymentTable {
  id: string
  chain: string
  token: string
  payer: string
  nonce: string
  pay_to: string
  /** Null: the gateway carries it itself. */
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
  /** When a reorganization took its settlement back; null: it stands. */
  reversed_at: Generated<Date | null>
}

/** What was sold for a payment: one row for each that is settled, written by the database's own function. */
export interface MeteringTable {
  payment_id: string
  operation: string
  payer: string
  asset: string
  units: bigint
  at: Date
}

/** How many readers of a page of the documentation said what of it; nothing about who. */
export interface DocsFeedbackTable {
  page: string
  up: bigint
  down: bigint
}
