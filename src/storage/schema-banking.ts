/** Tables of `sql/migrations/0001-baseline/10-banking.sql`. */
import type { JsonColumn } from './schema.ts'

/** `token`, `chain` and `address`: target of converted deposits; null for cash. */
export interface VirtualAccountTable {
  id: string
  account_id: string
  currency: string
  ordinal: number
  status: 'pending' | 'active' | 'deactivated'
  provider_id: string
  provider_customer: string | null
  holder_name: string
  bank_name: string
  bank_address: string
  instructions: JsonColumn<Record<string, unknown>>
  reference: string
  token: string | null
  chain: string | null
  address: string | null
  created_at: Date
}

/** An order of a virtual account at the provider. */
export interface VirtualAccountOrderTable {
  id: string
  account_id: string
  currency: string
  ordinal: number
  holder_name: string
  token: string | null
  chain: string | null
  address: string | null
  status: 'open' | 'opened' | 'given_up'
  created_at: Date
  tried_at: Date
}

/** A deposit by the provider's id, with its state and booking. */
export interface DepositTable {
  id: string
  virtual_account_id: string
  account_id: string
  state: string
  rank: number
  said_units: bigint | null
  place: string | null
  asset: string | null
  units: bigint | null
  created_at: Date
  updated_at: Date
}

/** A payout by the provider's id, with the decision that holds its money. */
export interface PayoutTable {
  id: string
  account_id: string
  decision_id: string
  state: string
  rank: number
  updated_at: Date
}
