/** The tables of migration `0009-compliance` as Kysely sees them. */

/** An address that its owner never pays. `address` is lower case. */
export interface BlockedAddressTable {
  account_id: string
  address: string
  created_at: Date
}

/** What the Travel Rule asks of one transfer. `destination` is lower case. */
export interface TravelRuleTable {
  id: string
  account_id: string
  status: 'required' | 'not_required' | 'sent' | 'accepted' | 'declined'
  token: string
  units: bigint
  destination: string
  chain: string
  /** The decision of its transfer; null while there is none. */
  decision_id: string | null
  /** The IVMS101 payload, sealed; null once it was erased. */
  sealed: Uint8Array | null
  created_at: Date
  erased_at: Date | null
}

/** An identity review. `sealed` is what the person said, null once it was erased. */
export interface KycApplicationTable {
  id: string
  account_id: string
  level: 'basic' | 'full'
  status: 'init' | 'pending' | 'approved' | 'retry' | 'rejected'
  labels: readonly string[]
  sealed: Uint8Array | null
  reference: string | null
  created_at: Date
  updated_at: Date
  reviewed_at: Date | null
}
