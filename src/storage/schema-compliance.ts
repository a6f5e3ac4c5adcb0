/** The tables of compliance as Kysely sees them. */
import type { Generated } from 'kysely'

/** An address that its owner never pays. `address` is lower case. */
interface BlockedAddressTable {
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
  /** The institution that is told; null: nobody is. */
  vasp_name: string | null
  vasp_lei: string | null
  network_reference: Generated<string | null>
  answer: Generated<string | null>
  sent_at: Generated<Date | null>
  tried_at: Date | null
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

/** A person's decision on an application whose name is on a sanctions list. */
interface KycDecisionTable {
  application_id: string
  decided_by: string
  verdict: 'approve' | 'reject'
  reason: string
  decided_at: Date
}

/** A person's decision on Travel Rule data that names somebody on a sanctions list. */
interface TravelRuleDecisionTable {
  travel_rule_id: string
  decided_by: string
  verdict: 'approve' | 'reject'
  reason: string
  decided_at: Date
}

/** A spend that AML wants a person to look at. */
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

/** The tables, by name. */
export interface ComplianceTables {
  aml_review: AmlReviewTable
  blocked_address: BlockedAddressTable
  travel_rule: TravelRuleTable
  travel_rule_decision: TravelRuleDecisionTable
  kyc_application: KycApplicationTable
  kyc_decision: KycDecisionTable
}
