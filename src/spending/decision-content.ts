/** The content of a decision: what its authentication code, its receipt and its place in the chain cover. */
import { z } from 'zod'
import type { Json } from '../base/json.ts'

/** What a decision says: all that its row holds, and what the chain hashes. Also a member of an export's lines. */
export const decisionContent = z.strictObject({
  decisionId: z.string().describe('`dec_…`.'),
  at: z.string().describe('When it was taken, ISO 8601 UTC.'),
  accountId: z.string().describe('`acct_…`: whose money it was about.'),
  keyId: z.string().nullable().describe('`key_…`; null where a person spent.'),
  operation: z.string().describe('The operation, such as `wallets.transfer`.'),
  verdict: z.string().describe('What was decided.'),
  policyVersion: z.int().nullable().describe('Version of the key’s policy.'),
  policyHash: z.string().nullable().describe('SHA-256 of the policy’s canonical JSON, hex.'),
  facts: z.json().describe('What it was decided on.'),
  violations: z.json().describe('Every rule that was violated.'),
  availableUnits: z.string().nullable().describe('What was there, where it was not enough: smallest units.'),
})

/** A decision's content. */
export type DecisionContent = Omit<z.output<typeof decisionContent>, 'facts' | 'violations'> & {
  readonly facts: Json
  readonly violations: Json
}

/** A decision as {@link contentColumns} select it. */
export interface ContentRow {
  readonly id: string
  readonly at: string
  readonly account_id: string
  readonly key_id: string | null
  readonly operation: string
  readonly verdict: string
  readonly policy_version: number | null
  readonly policy_hash: string | null
  readonly facts: Json
  readonly violations: Json
  readonly available_units: bigint | null
}

/** A decision as the database function `decisions_made` answers it: in JSON, where a bigint is its digits. */
export type MadeRow = Omit<ContentRow, 'available_units'> & { readonly available_units: string | null }

/** The columns of `decision d` that are its content. The time goes as text: a Date would drop what is below a millisecond. */
export const contentColumns = `d.id, to_char(d.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at, d.account_id,
  d.key_id, d.operation, d.verdict, d.policy_version, d.policy_hash, d.facts, d.violations, d.available_units`

/** The content of a row. */
export function contentOf(row: ContentRow | MadeRow): DecisionContent {
  return {
    decisionId: row.id,
    at: row.at.replace(/000Z$/, 'Z'),
    accountId: row.account_id,
    keyId: row.key_id,
    operation: row.operation,
    verdict: row.verdict,
    policyVersion: row.policy_version,
    policyHash: row.policy_hash,
    facts: row.facts,
    violations: row.violations,
    availableUnits: row.available_units === null ? null : row.available_units.toString(),
  }
}
