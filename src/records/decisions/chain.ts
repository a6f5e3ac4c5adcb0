/**
 * Audit: every decision has a signed receipt and a place in one hash chain. May import the base, the database port,
 * spending and policies. Invariants: hashes and signatures depend on the decision's row alone; only decisions
 * authenticated by the deciding process are signed; sealing never delays a spend; the chain has no gap and no fork,
 * and can be verified anywhere. Each hash covers a decision's content and the previous hash.
 */
import { createHash } from 'node:crypto'
import { canonicalContent, type DecisionContent } from '../../books/spending/decision-content.ts'

/** Previous hash of the first decision. */
export const FIRST_PREVIOUS = '0'.repeat(64)

/** SHA-256, hex, of the previous hash (as its hex text) followed by the content's RFC 8785 text. */
export function chainHash(previous: string, content: DecisionContent): string {
  return createHash('sha256').update(previous).update(canonicalContent(content)).digest('hex')
}

/** SHA-256, hex, of the content's RFC 8785 text alone. */
export function contentHash(content: DecisionContent): string {
  return createHash('sha256').update(canonicalContent(content)).digest('hex')
}
