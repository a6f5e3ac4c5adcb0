/**
 * The journal: an append-only record of changes to policies, keys, allowances, approvals, locks, factors, signers,
 * cards, rails and identity reviews, with their actors. May import the base and ports. Invariants: an entry is
 * written in the transaction of its change; entries form one hash chain without gaps; each is authenticated with a
 * key that the database never holds; no entry contains secrets or personal data, or is larger than 10 KB.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { canonicalJson } from '../../core/base/json.ts'
import { keyedHash } from '../../core/base/seal.ts'
import type { KeptStates } from './shorten.ts'

/** Previous hash of the first entry. */
export const FIRST_PREVIOUS = '0'.repeat(64)

/** The content covered by an entry's hash. Also part of export lines. */
export const entryContent = z.strictObject({
  id: z.string().describe('`jrn_…`.'),
  accountId: z.string().describe('`acct_…`: account whose journal has the entry.'),
  at: z.string().describe('Time of the change, ISO 8601 UTC.'),
  actor: z.strictObject({
    kind: z.enum(['person', 'admin', 'key', 'system']).describe('`system`: the gateway itself.'),
    id: z.string().nullable().describe('`acct_…` or `key_…`; null for `system`.'),
  }),
  action: z.string().describe('Action, such as `key.paused`.'),
  object: z.strictObject({
    kind: z.string().describe('Kind of the object, such as `key`.'),
    id: z.string().describe('Id of the object.'),
  }),
  before: z.json().describe('State before the change, or what of it changed; null for a created object.'),
  after: z.json().describe('State after the change, or what of it changed; null for a removed object.'),
  beforeHash: z
    .string()
    .optional()
    .describe(
      'SHA-256 of the canonical JSON (RFC 8785) of the whole state before, hex; absent if it is whole.',
    ),
  afterHash: z
    .string()
    .optional()
    .describe(
      'SHA-256 of the canonical JSON (RFC 8785) of the whole state after, hex; absent if it is whole.',
    ),
})

export type EntryContent = Omit<z.output<typeof entryContent>, keyof KeptStates> & KeptStates

/** @property mac null if unknown, as in an export. */
export interface ChainedEntry {
  readonly sequence: bigint
  readonly previous: string
  readonly hash: string
  readonly mac: string | null
  readonly content: EntryContent
}

/** SHA-256, hex, of the previous hash followed by the content's RFC 8785 text. */
export function entryHash(previous: string, content: EntryContent): string {
  return createHash('sha256').update(previous).update(canonicalJson(content)).digest('hex')
}

/** Authentication code of an entry at its position; the hash covers its content and all previous entries. */
export function entryMac(
  dataKey: Uint8Array,
  { sequence, hash }: Pick<ChainedEntry, 'sequence' | 'hash'>,
): string {
  return keyedHash(dataKey, 'journal', `${sequence} ${hash}`)
}

/** True if the entry's authentication code is valid. */
export function isAuthenticEntry(dataKey: Uint8Array, entry: ChainedEntry): boolean {
  const expected = Buffer.from(entryMac(dataKey, entry))
  const found = Buffer.from(entry.mac ?? '')
  return found.length === expected.length && timingSafeEqual(found, expected)
}
