/** The shape of a policy's answer: every rule that was violated, in words that a caller can act on. */

/** The rules that a spend can be found to violate: those of its policy, and the AML screening. A promise to clients: contract section 5. */
export type RuleName =
  | 'per_transaction'
  | 'daily_budget'
  | 'daily_count'
  | 'owner_budget'
  | 'category'
  | 'asset'
  | 'chain'
  | 'counterparty'
  | 'new_payee_cooldown'
  | 'mcc'
  | 'symbol'
  | 'time_window'
  | 'not_yet_valid'
  | 'expired'
  | 'paused'
  | 'aml_screening'

/**
 * One violated rule. Amounts are decimal strings in USD, lists are joined by commas, times are ISO 8601 UTC; null where a
 * member says nothing about this rule.
 * @property limit what the policy allows. @property used what the period had already counted.
 * @property requested what this spend asked for; null where it is not known. @property remaining what is left to ask for.
 * @property resetsAt when the same spend may be asked for again.
 */
export interface Violation {
  readonly rule: RuleName
  readonly limit: string | null
  readonly used: string | null
  readonly requested: string | null
  readonly remaining: string | null
  readonly resetsAt: string | null
}

/** The answer of a whole policy: allowed only where no rule is violated. */
export interface Verdict {
  readonly allowed: boolean
  readonly violations: readonly Violation[]
}

/** The verdict on everything that was found. */
export function verdictOf(violations: readonly Violation[]): Verdict {
  return { allowed: violations.length === 0, violations }
}

/** A violation of a rule; what is not said is null. */
export function violationOf(rule: RuleName, said: Partial<Omit<Violation, 'rule'>>): Violation {
  return { rule, limit: null, used: null, requested: null, remaining: null, resetsAt: null, ...said }
}

/** A key without a policy may spend on nothing. */
export const noPolicy: Violation = violationOf('category', { limit: '' })
