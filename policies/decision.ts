/** Result of a policy evaluation: every violated rule, in a form that callers can act on. */

/** Rules that a spend can violate: those of its policy, and the AML screening. Clients read their names: they are a promise. */
export type RuleName =
  | 'per_transaction'
  | 'daily_budget'
  | 'daily_count'
  | 'weekly_budget'
  | 'weekly_count'
  | 'monthly_budget'
  | 'monthly_count'
  | 'total_budget'
  | 'total_count'
  | 'owner_budget'
  | 'category'
  | 'asset'
  | 'chain'
  | 'counterparty'
  | 'seller'
  | 'payee_changed'
  | 'price_changed'
  | 'seller_record'
  | 'new_payee_cooldown'
  | 'repeat_limit'
  | 'mcc'
  | 'symbol'
  | 'time_window'
  | 'not_yet_valid'
  | 'expired'
  | 'paused'
  | 'aml_screening'

/**
 * One violated rule. Amounts are decimal strings in USD, lists are joined by commas, times are ISO 8601 UTC; null
 * when a member does not apply.
 * @property limit what the policy allows.
 * @property used what the period had already counted.
 * @property requested what this spend requested; null when unknown.
 * @property remaining what can still be requested.
 * @property resetsAt when the same spend can be requested again.
 */
export interface Violation {
  readonly rule: RuleName
  readonly limit: string | null
  readonly used: string | null
  readonly requested: string | null
  readonly remaining: string | null
  readonly resetsAt: string | null
  /** Key whose policy it is, where keys are judged together with those above them. */
  readonly agentId?: string | undefined
}

/** Result of a whole policy: allowed only without violations. */
export interface Verdict {
  readonly allowed: boolean
  readonly violations: readonly Violation[]
}

export function toVerdict(violations: readonly Violation[]): Verdict {
  return { allowed: violations.length === 0, violations }
}

/** Builds a violation; omitted members are null. */
export function buildViolation(rule: RuleName, members: Partial<Omit<Violation, 'rule'>>): Violation {
  return { rule, limit: null, used: null, requested: null, remaining: null, resetsAt: null, ...members }
}

/** A key without a policy may spend nothing. */
export const noPolicy: Violation = buildViolation('category', { limit: '' })
