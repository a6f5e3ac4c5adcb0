/** Tables of compliance. */
import type { Generated } from 'kysely'

/** An address blocked by its owner. `address` is lower case. */
interface BlockedAddressTable {
  account_id: string
  address: string
  created_at: Date
}

/** Travel Rule data of one transfer. `destination` is lower case. */
export interface TravelRuleTable {
  id: string
  account_id: string
  status: 'required' | 'not_required' | 'sent' | 'accepted' | 'declined'
  token: string
  units: bigint
  destination: string
  chain: string
  /** Decision of the transfer, or null. */
  decision_id: string | null
  /** Encrypted IVMS101 payload; null after erasure. */
  sealed: Uint8Array | null
  created_at: Date
  erased_at: Date | null
  /** Notified institution; null for none. */
  vasp_name: string | null
  vasp_lei: string | null
  network_reference: Generated<string | null>
  answer: Generated<string | null>
  sent_at: Generated<Date | null>
  tried_at: Date | null
}

/** An identity review. `sealed` is the encrypted application; null after erasure. */
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

/** A person's decision on an applicant who matched a sanctions list. */
interface KycDecisionTable {
  application_id: string
  decided_by: string
  verdict: 'approve' | 'reject'
  reason: string
  decided_at: Date
}

/** A person's decision on Travel Rule data that matched a sanctions list. */
interface TravelRuleDecisionTable {
  travel_rule_id: string
  decided_by: string
  verdict: 'approve' | 'reject'
  reason: string
  decided_at: Date
}

/** An AML review of a spend by a person. */
interface AmlReviewTable {
  id: string
  account_id: string
  decision_id: string
  subject: string
  lists: readonly string[]
  status: 'open' | 'released' | 'blocked'
  created_at: Date
  decided_by: string | null
  reason: string | null
  decided_at: Date | null
  used_by: string | null
}

export interface ComplianceTables {
  aml_review: AmlReviewTable
  blocked_address: BlockedAddressTable
  travel_rule: TravelRuleTable
  travel_rule_decision: TravelRuleDecisionTable
  kyc_application: KycApplicationTable
  kyc_decision: KycDecisionTable
}
