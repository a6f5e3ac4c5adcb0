/**
 * The journal: who changed policies, keys, allowances, approvals, locks, factors, signers, cards and rails, and who decided on
 * identity reviews. May import the base and ports. Invariants: an entry is written in the transaction of its change; entries form one hash chain without a gap; each
 * is authenticated with a key that the database never holds; no entry holds a secret or personal data.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { canonicalJson, type Json } from '../base/json.ts'
import { keyedHash } from '../base/seal.ts'

/** The hash before the first entry. */
export const FIRST_PREVIOUS = '0'.repeat(64)

/** An entry's content: everything that its hash covers. Also a member of an export's lines. */
export const entryContent = z.strictObject({
  id: z.string().describe('`jrn_…`.'),
  accountId: z.string().describe('`acct_…`: the account that reads it.'),
  at: z.string().describe('When it was changed, ISO 8601 UTC.'),
  actor: z.strictObject({
    kind: z.enum(['person', 'admin', 'key', 'system']).describe('`system`: the gateway itself.'),
    id: z.string().nullable().describe('`acct_…` or `key_…`; null for `system`.'),
  }),
  action: z.string().describe('What was done, such as `key.paused`.'),
  object: z.strictObject({
    kind: z.string().describe('Kind of the object, such as `key`.'),
    id: z.string().describe('Its id.'),
  }),
  before: z.json().describe('The state before; null where it was created.'),
  after: z.json().describe('The state after; null where it was removed.'),
})

/** An entry's content. */
export type EntryContent = Omit<z.output<typeof entryContent>, 'before' | 'after'> & {
  readonly before: Json
  readonly after: Json
}

/** An entry with its place in the chain. @property mac null where it is not known, as in an export. */
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

/** The authentication code of an entry in its place: the hash covers its content and everything before it. */
export function entryMac(
  dataKey: Uint8Array,
  { sequence, hash }: Pick<ChainedEntry, 'sequence' | 'hash'>,
): string {
  return keyedHash(dataKey, 'journal', `${sequence} ${hash}`)
}

/** Whether an entry is as its process wrote it. */
export function isAuthenticEntry(dataKey: Uint8Array, entry: ChainedEntry): boolean {
  const expected = Buffer.from(entryMac(dataKey, entry))
  const found = Buffer.from(entry.mac ?? '')
  return found.length === expected.length && timingSafeEqual(found, expected)
}
