/**
 * The content of a decision, covered by its authentication code, its receipt and its hash in the chain of decisions.
 */
import { z } from 'zod'
import { canonicalJson, type Json } from '../../core/base/json.ts'

/** All members of a decision's row that the hash chain covers. Also a member of each exported line. */
export const decisionContent = z.strictObject({
  decisionId: z.string().describe('`dec_…`.'),
  at: z.string().describe('When the decision was made, ISO 8601 UTC.'),
  accountId: z.string().describe('`acct_…`: account whose money was to be spent.'),
  keyId: z.string().nullable().describe('`key_…`; null when a person spent.'),
  operation: z.string().describe('The operation, such as `wallets.transfer`.'),
  verdict: z.string().describe('Outcome of the decision.'),
  policyVersion: z.int().nullable().describe('Version of the key’s policy.'),
  policyHash: z.string().nullable().describe('SHA-256 of the policy’s canonical JSON, hex.'),
  facts: z.json().describe('Facts the decision was based on.'),
  violations: z.json().describe('Every rule that was violated.'),
  availableUnits: z
    .string()
    .nullable()
    .describe('Available amount when it was insufficient, in smallest units; null otherwise.'),
})

export type DecisionContent = Omit<z.output<typeof decisionContent>, 'facts' | 'violations'> & {
  readonly facts: Json
  readonly violations: Json
}

/** A row with the columns of {@link contentColumns}. */
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

/** A row of the database function `decisions_made`: JSON, so a bigint is a string of digits. */
export type MadeRow = Omit<ContentRow, 'available_units'> & { readonly available_units: string | null }

/** Columns of `decision d` that form its content. The time is text because a Date would drop the microseconds. */
export const contentColumns = `d.id, to_char(d.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at, d.account_id,
  d.key_id, d.operation, d.verdict, d.policy_version, d.policy_hash, d.facts, d.violations, d.available_units`

export function toContent(row: ContentRow | MadeRow): DecisionContent {
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

const canonicalTexts = new WeakMap<DecisionContent, string>()

/** The RFC 8785 text of a content. Its authentication code, its hash and its receipt all need it: it is made once. */
export function canonicalContent(content: DecisionContent): string {
  const known = canonicalTexts.get(content)
  if (known !== undefined) return known
  const text = canonicalJson(content)
  canonicalTexts.set(content, text)
  return text
}
