/** Tables of wallets and their transfers. */
import type { Generated } from 'kysely'
import type { JsonColumn } from './schema.ts'

/** An account's smart account. `address` is lower case. */
export interface WalletTable {
  account_id: string
  address: string
  chain: string
  created_at: Date
  origin: JsonColumn
  owner: JsonColumn
  card_cover: Generated<bigint>
}

/** An externally owned account that signs for a wallet. `address` is lower case. */
export interface WalletSignerTable {
  id: string
  account_id: string
  address: string
  created_at: Date
}

/** A signable intent and its chain operation. `message` is RFC 8785 JSON, `hash` its SHA-256. */
export interface IntentTable {
  id: string
  account_id: string
  kind: 'transfer' | 'allowance'
  message: string
  hash: string
  operation_hash: string
  operation_id: string
  token: string | null
  units: bigint | null
  destination: string | null
  chain: string
  agent_id: string | null
  daily_micros: bigint | null
  created_at: Date
  expires_at: Date
  used_at: Date | null
}

/** A wallet whose chain balance differs from the ledger. Smallest units. */
export interface WalletDriftTable {
  account_id: string
  token: string
  booked: bigint
  on_chain: bigint
  first_seen_at: Date
  last_seen_at: Date
}

/** Booked money that the chain no longer holds, in smallest units. */
export interface WalletShortfallTable {
  account_id: string
  token: string
  frozen: bigint
  uncovered: bigint
  first_seen_at: Date
  updated_at: Date
}

/** Search position for deposits on a chain. */
export interface ChainCursorTable {
  chain: string
  identity: string
  block_number: bigint
  block_hash: string
  adopted_at: Date
  updated_at: Date
  verify_since: Date | null
}

/** A chain transfer. `destination` is lower case. */
export interface TransferTable {
  id: string
  account_id: string
  decision_id: string
  token: string
  units: bigint
  destination: string
  chain: string
  state: 'reserved' | 'submitted' | 'settlement_pending' | 'confirmed' | 'failed'
  transaction_hash: string | null
  failure: string | null
  failure_code: 'provider_unavailable' | 'signature_rejected' | null
  created_at: Date
  updated_at: Date
  authorized: JsonColumn
  signer: 'sandbox' | 'passkey' | 'eoa' | 'agent'
  valid_until: Date
  mac: string | null
}

/** A relayed payment that an external payer signed. Addresses are lower case. */
export interface RelayTable {
  id: string
  account_id: string
  decision_id: string
  kind: 'authorization' | 'permit'
  token: string
  units: bigint
  payer: string
  destination: string
  chain: string
  nonce: string
  signed: JsonColumn
  expires_at: Date
  state: 'reserved' | 'submitted' | 'settlement_pending' | 'confirmed' | 'failed'
  transaction_hash: string | null
  failure: string | null
  rejection:
    | 'expired'
    | 'not_yet_valid'
    | 'nonce_used'
    | 'signature'
    | 'domain'
    | 'balance'
    | 'refused'
    | null
  created_at: Date
  updated_at: Date
}

/** Sandbox: booked money that is not minted yet. `address` is lower case. */
export interface OwedMintTable {
  id: string
  account_id: string
  token: string
  address: string
  units: bigint
  tried_at: Date
}
