/**
 * Compliance: identity verification, Travel Rule data and blocked addresses. May import base, ports, ledger, spending
 * and policies. Personal data is stored sealed and can be erased; money does not move while screening is unavailable.
 */
interface Row {
  readonly country: string | null
  readonly is_blocked: boolean
  readonly travel_rule_id: string | null
  readonly unanswered: 'required' | 'sent' | 'accepted' | 'declined' | null
  readonly is_declined: boolean
  readonly listed_id: string | null
}

/** Facts that decide on a transfer. @param row as the database function `compliance_facts` returns it. */
export function complianceFactsFrom(row: Row, destination: string) {
  return {
    blocked: new Set(row.is_blocked ? [destination.toLowerCase()] : []),
    country: row.country,
    travelRuleId: row.is_declined ? null : row.travel_rule_id,
    institution: row.is_declined
      ? ('declined' as const)
      : row.unanswered === null
        ? null
        : ('silent' as const),
    listedDataId: row.listed_id,
  }
}
