/** The chain: each hash covers a decision's content and the hash before it. */
import { createHash } from 'node:crypto'
import { canonicalJson } from '../json.ts'
import type { DecisionContent } from './content.ts'

/** What stands before the first decision. */
export const FIRST_PREVIOUS = '0'.repeat(64)

/** SHA-256, hex, of the previous hash (as its hex text) followed by the content's RFC 8785 text. */
export function chainHash(previous: string, content: DecisionContent): string {
  return createHash('sha256').update(previous).update(canonicalJson(content)).digest('hex')
}

/** SHA-256, hex, of the content's RFC 8785 text alone. */
export function contentHash(content: DecisionContent): string {
  return createHash('sha256').update(canonicalJson(content)).digest('hex')
}
