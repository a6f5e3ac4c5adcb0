/**
 * Spending: reserve, then settle or release, each once and in one call of a database function. May import the base,
 * the database port and the ledger. Invariants: a spend that is not allowed moves nothing; a reservation holds its
 * money and its share of the budget until it is resolved; the used part of a day's budget is the sum of its
 * reservations that were not released; an idempotency key never reserves twice.
 */
import type { Json } from '../../core/base/json.ts'
import { Failure, type Violation } from '../../core/failures/failure.ts'
import type { Value } from '../../core/money/shares.ts'
import type { Connection, Statement } from '../../storage/database.ts'
import { requestText } from './request-text.ts'
import type { SpendRequest } from './spend-request.ts'

/**
 * Outcome of a request. `replayed`: its idempotency key was decided before, under this decision id.
 * - `allow`: the money is held; call the provider, then settle or release. An approval may overrule violations.
 *   `written`: wallet of the transfer's row that was written, if one was; true for an order's, the state of a purchase's.
 * - `repeated`: an earlier call was allowed; the operation determines its outcome.
 * - `approval_required`: everything else allows it; nothing is held or counted.
 * - `fingerprint_mismatch`: the idempotency key belongs to another request.
 * - `stale_policy`: the key was revoked or its policy changed; reload it and reserve again.
 * - `account_locked`: the account was locked in the meantime.
 */
export type SpendVerdict =
  | {
      readonly verdict: 'allow'
      readonly decisionId: string
      /** Violations that the owner's approval overrules; absent if there are none. */
      readonly overruled?: readonly Violation[]
      readonly written?: Json | null
    }
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
      readonly overruled?: readonly Violation[]
    }
  | { readonly verdict: 'approval_required'; readonly decisionId: string; readonly replayed: boolean }
  | { readonly verdict: 'repeated'; readonly decisionId: string }
  | { readonly verdict: 'fingerprint_mismatch' }
  | { readonly verdict: 'stale_policy' }
  | { readonly verdict: 'account_locked' }

/** Row that the database function returns for a request. */
interface ReserveRow {
  readonly verdict: SpendVerdict['verdict']
  readonly replayed: boolean
  readonly decision_id: string | null
  /** Null for a replay of another decision. */
  readonly violations: readonly Violation[] | null
  readonly available_units: bigint | null
  readonly written: Json | null
}

const statement: Statement = { name: 'operation_reserve', text: 'select * from operation_reserve($1)' }

/** Decides a spend and, if allowed, holds its money and counts it, in one round trip. */
export async function reserveSpend(connection: Connection, request: SpendRequest): Promise<SpendVerdict> {
  const [verdict] = await reserveSpends(connection, [request])
  if (verdict === undefined) throw new Failure('internal', 'The reserve returned no row.')
  return verdict
}

/**
 * Decides spends in order, in one round trip and one commit, with the same verdicts as single calls. A throw means that none
 * was decided, unless it is a Failure: then the outcome is unknown.
 */
export async function reserveSpends(
  connection: Connection,
  requests: readonly SpendRequest[],
): Promise<readonly SpendVerdict[]> {
  const rows = await connection.call<ReserveRow>(statement, [`[${requests.map(requestText).join()}]`])
  return requests.map((request, index) => {
    const row = rows[index]
    if (row === undefined) throw new Failure('internal', 'The batch of spends returned too few rows.')
    return toSpendVerdict(row, request)
  })
}

function toSpendVerdict(row: ReserveRow, request: SpendRequest): SpendVerdict {
  const { verdict, replayed, available_units: units } = row
  const violations = row.violations ?? []
  const decisionId = row.decision_id ?? request.decisionId
  const overruled = violations.length === 0 ? {} : { overruled: violations }
  switch (verdict) {
    case 'allow':
      return { verdict, decisionId, ...overruled, ...(row.written === null ? {} : { written: row.written }) }
    case 'deny':
      return { verdict, decisionId, replayed, violations }
    case 'insufficient_funds':
      return {
        verdict,
        decisionId,
        replayed,
        available: { ...request.money, units: units ?? 0n },
        ...overruled,
      }
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
