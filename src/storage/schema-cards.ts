/** Tables of `sql/migrations/0001-baseline/11-cards.sql`. */
import type { Generated } from 'kysely'
import type { Json } from '../base/json.ts'
import type { JsonColumn } from './schema.ts'

/** Limits are smallest units of the card's currency; `version` counts control changes. */
export interface CardTable {
  id: string
  account_id: string
  key_id: string | null
  processor_token: string
  type: 'virtual' | 'physical'
  status: Generated<'active' | 'frozen' | 'canceled'>
  brand: string
  last4: string
  exp_month: number
  exp_year: number
  currency: string
  cardholder_name: string
  nickname: string | null
  daily_max: bigint | null
  purchase_max: bigint | null
  channels: string[]
  mcc_allow: string[] | null
  mcc_deny: Generated<string[]>
  priority: string[]
  version: Generated<number>
  created_at: Date
}

/** An order of a card at the processor. */
export interface CardOrderTable {
  id: string
  account_id: string
  wanted: JsonColumn<unknown>
  caller_kind: 'person' | 'key' | null
  caller: string | null
  caller_key: string | null
  status: 'open' | 'issued' | 'given_up'
  created_at: Date
  tried_at: Date
}

/** An authorization request and its outcome. Amounts are smallest units of the card's currency. */
export interface CardAuthorizationTable {
  id: string
  processor_token: string
  webhook_id: string | null
  fingerprint: string | null
  card_id: string
  account_id: string
  key_id: string | null
  decision_id: string | null
  day: string
  reason: string
  status: 'pending' | 'settled' | 'voided' | 'expired' | 'declined'
  units: bigint
  approved: bigint
  cleared: Generated<bigint>
  refunded: Generated<bigint>
  shortfall: Generated<bigint>
  about: JsonColumn<Record<string, Json>>
  created_at: Date
  updated_at: Date
}

/** Remaining holds of an authorization; `micros` is the value in millionths of a USD. */
export interface CardHoldTable {
  authorization_id: string
  ordinal: number
  place: string
  asset: string
  units: bigint
  micros: bigint
}

/** Spent stablecoins to be sent to the treasury. `decision_id` is that of the last attempt. */
export interface CardSettlementTable {
  id: string
  account_id: string
  authorization_id: string | null
  card_id: string | null
  place: string
  asset: string
  units: bigint
  owed_asset: string
  owed_units: bigint
  paid_to: string
  status: 'sending' | 'refused' | 'settled' | 'freed'
  decision_id: string
  tries: number
  refused_by: 'authorization' | 'transfer' | null
  next_try_at: Date | null
  ended_at: Date | null
  created_at: Date
}

/** Amounts that the gateway paid for an owner, and the remaining debt. Smallest units of `asset`. */
export interface DebtTable {
  id: string
  account_id: string
  kind: 'card' | 'settlement' | 'deposit'
  reference: string
  card_id: string | null
  asset: string
  units: bigint
  owed: bigint
  paid_to: string
  created_at: Date
  tried_at: Date
  paid_at: Date | null
}

/** An out-of-order transaction message, received before its authorization. */
export interface CardEarlyTable {
  webhook_id: string
  processor_token: string
  message: JsonColumn<unknown>
  received_at: Date
}

/** A webhook without other effects, or one that is deduplicated by id. */
export interface WebhookEventTable {
  provider: string
  id: string
  type: string
  received_at: Date
}
