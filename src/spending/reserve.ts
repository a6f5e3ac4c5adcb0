/**
 * Spending: reserve, then settle or release, each in one call of a function of the database, each once. May import the
 * base, the database port and the ledger. Invariants: a spend that is not allowed moves nothing; a reservation holds its
 * money and its share of the budget until it is resolved; what was used of a day's budget is the sum of its reservations
 * that were not released; the same idempotency key never reserves twice.
 */
import type { OutflowWindow } from '../../policies/aml/outflow-windows.ts'
import type { Violation } from '../failure.ts'
import type { Json } from '../json.ts'
import type { Value } from '../shares.ts'
import { type Connection, callForRow, type Statement } from '../storage/database.ts'
import type { IdempotentCall } from './idempotency.ts'
import { parameterNames, parametersOf } from './reserve-parameters.ts'

/** The counters of a policy: millionths of a USD a UTC day, and spends a UTC day. Null is no limit. */
export interface SpendLimits {
  readonly dailyMaxMicros: bigint | null
  readonly dailyMaxCount: number | null
}

/** A spend to reserve. */
export interface SpendRequest {
  /** A new `dec_…`. */
  readonly decisionId: string
  readonly accountId: string
  /**
   * The key that spends and the version of the policy that was evaluated; null for a person's session. The owner's cap over
   * all keys is not here: the database reads it when it decides.
   */
  readonly key: { readonly id: string; readonly policyVersion: number; readonly limits: SpendLimits } | null
  readonly policyHash: string | null
  /** The tool's name, such as `wallets.transfer`. */
  readonly operation: string
  /** What the decision was made on, for the record. */
  readonly facts: Json
  /** What the policy's pure rules found. With any the spend is denied, and the counters add theirs. */
  readonly violations: readonly Violation[]
  /** What is held: what is paid, or the shares that are sold. */
  readonly money: Value
  /** What it counts for in budgets: millionths of a USD; null where it is not known, which any daily maximum denies. */
  readonly usdMicros: bigint | null
  /** Who is paid, in any case; null where it is not known, which a cool-down denies. */
  readonly counterparty: string | null
  /** Seconds from a key's first request to pay somebody until it may; null is no rule. */
  readonly cooldownSeconds: number | null
  /** The owner must approve it where nothing else denies it. */
  readonly needsApproval: boolean
  /** The owner has approved it: it takes the idempotency key over from the call that was told `approval_required`. */
  readonly isApproved: boolean
  /** Where the money is: a chain's name, or `bank`. Null: it is not the account's, and nothing is held. */
  readonly place: string | null
  readonly idempotency: IdempotentCall | null
  readonly at: Date
  /** The AML windows that it is judged by and counted in; none where it is absent. */
  readonly windows?: readonly OutflowWindow[]
  /** The name that reviews of exactly this spend are kept by, and the released one that it uses up; absent where AML has no say. */
  readonly review?: { readonly subject: string; readonly released: string | null } | null
  /** Authenticates the decision that the request leads to by itself. @see authenticatedReserve */
  readonly mac?: string
}

/**
 * What became of a request. `replayed`: its idempotency key was decided before, under this decision id.
 * - `allow`: the money is held; call the provider, then settle or release.
 * - `repeated`: an earlier call was allowed; how it went is a matter of what it did.
 * - `approval_required`: all else would allow it; nothing is held and nothing is counted.
 * - `fingerprint_mismatch`: the idempotency key belongs to another request.
 * - `stale_policy`: the key was revoked or its policy changed; load it anew and reserve again.
 * - `account_locked`: its owner's account was locked meanwhile.
 */
export type SpendVerdict =
  | { readonly verdict: 'allow'; readonly decisionId: string }
  | {
      readonly verdict: 'deny'
      readonly decisionId: string
      readonly replayed: boolean
      readonly violations: readonly Violation[]
    }
  | {
      readonly verdict: 'insufficient_funds'
      readonly decisionId: string
      readonly replayed: boolean
      readonly available: Value
    }
  | { readonly verdict: 'approval_required'; readonly decisionId: string; readonly replayed: boolean }
  | { readonly verdict: 'repeated'; readonly decisionId: string }
  | { readonly verdict: 'fingerprint_mismatch' }
  | { readonly verdict: 'stale_policy' }
  | { readonly verdict: 'account_locked' }

/** What the database's functions answer for a request. */
export interface ReserveRow {
  readonly verdict: SpendVerdict['verdict']
  readonly replayed: boolean
  readonly decision_id: string | null
  readonly violations: readonly Violation[]
  readonly available_units: bigint | null
}

/** The reserve as one named statement; its parameters are {@link parametersOf}, in their order. */
const statement: Statement = {
  name: 'spend_reserve',
  text: `select * from spend_reserve(${parameterNames.map((name, index) => `p_${name} => $${index + 1}`).join(', ')})`,
}

/** Decides on a spend and, where it is allowed, holds its money and counts it, in one round trip. */
export async function reserveSpend(connection: Connection, request: SpendRequest): Promise<SpendVerdict> {
  const parameters = parametersOf(request)
  const row = await callForRow<ReserveRow>(connection, statement, [
    ...parameterNames.map((name) => parameters[name]),
  ])
  return verdictOf(row, request)
}

/** A row in the words of this folder. */
export function verdictOf(row: ReserveRow, request: SpendRequest): SpendVerdict {
  const { verdict, replayed, violations, available_units: units } = row
  const decisionId = row.decision_id ?? request.decisionId
  switch (verdict) {
    case 'allow':
      return { verdict, decisionId }
    case 'deny':
      return { verdict, decisionId, replayed, violations }
    case 'insufficient_funds':
      return { verdict, decisionId, replayed, available: { ...request.money, units: units ?? 0n } }
    case 'approval_required':
      return { verdict, decisionId, replayed }
    case 'repeated':
      return { verdict, decisionId }
    case 'fingerprint_mismatch':
    case 'stale_policy':
    case 'account_locked':
      return { verdict }
  }
}
