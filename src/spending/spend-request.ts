import type { OutflowWindow } from '../../policies/aml/outflow-windows.ts'
import type { Json } from '../base/json.ts'
import type { Violation } from '../failures/failure.ts'
import type { Value } from '../money/shares.ts'
import type { IdempotentCall } from './idempotency.ts'

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
