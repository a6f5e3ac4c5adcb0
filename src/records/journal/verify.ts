/** Verifies a journal from any source. */

import { compactVerify, createLocalJWKSet, type JSONWebKeySet } from 'jose'
import { canonicalJson } from '../../core/base/json.ts'
import { type JwsSigner, signJws } from '../../core/base/jws.ts'
import { type ChainedEntry, entryHash, FIRST_PREVIOUS, isAuthenticEntry } from './entry.ts'

export interface JournalHead {
  readonly sequence: bigint
  readonly hash: string
}

/** @property fault first invalid entry, or null. */
export interface JournalReport {
  readonly head: JournalHead
  readonly fault: { readonly sequence: bigint; readonly detail: string } | null
}

/**
 * Verifies a journal from its first entry, and stops at the first fault. @param pages entries in order; null stands
 * for an unreadable entry. @param dataKey null skips authentication codes. @param expected where the journal must
 * end, if known. @param through hash of an entry that it must contain, because entries dropped from the end leave no
 * other trace.
 */
export async function verifyJournal(
  pages: AsyncIterable<readonly (ChainedEntry | null)[]> | Iterable<readonly (ChainedEntry | null)[]>,
  {
    dataKey,
    expected = null,
    through,
  }: { dataKey: Uint8Array | null; expected?: JournalHead | null; through?: string | undefined },
): Promise<JournalReport> {
  let head: JournalHead = { sequence: 0n, hash: FIRST_PREVIOUS }
  let holdsKnown = through === undefined || through === FIRST_PREVIOUS
  for await (const page of pages)
    for (const entry of page) {
      const detail = findFault(entry, head, dataKey)
      if (detail !== null) return { head, fault: { sequence: head.sequence + 1n, detail } }
      if (entry !== null) head = { sequence: entry.sequence, hash: entry.hash }
      holdsKnown ||= entry?.hash === through
    }
  if (!holdsKnown)
    return {
      head,
      fault: { sequence: head.sequence + 1n, detail: `it does not contain the known head ${through}` },
    }
  const isWhole = expected === null || (expected.sequence === head.sequence && expected.hash === head.hash)
  if (isWhole) return { head, fault: null }
  return { head, fault: { sequence: head.sequence + 1n, detail: `it must end with ${expected.sequence}` } }
}

function findFault(entry: ChainedEntry | null, head: JournalHead, dataKey: Uint8Array | null): string | null {
  if (entry === null) return 'it cannot be parsed'
  if (entry.sequence !== head.sequence + 1n) return `an entry is missing: the next one is ${entry.sequence}`
  if (entry.previous !== head.hash) return 'its previous hash is not the hash of the entry before it'
  if (entryHash(entry.previous, entry.content) !== entry.hash) return 'its content does not have its hash'
  if (dataKey !== null && !isAuthenticEntry(dataKey, entry)) return 'no gateway has authenticated it'
  return null
}

const HEAD_TYPE = 'bursar-journal+jws'

/** Signs the journal head of an export, so that public keys suffice for verification. */
export function signHead(key: JwsSigner, { sequence, hash }: JournalHead): Promise<string> {
  return signJws(key, {
    type: HEAD_TYPE,
    payload: canonicalJson({ sequence: sequence.toString(), hash }),
  })
}

/** True if one of the keys signed the journal head. */
export async function isSignedHead(
  signature: string,
  { sequence, hash }: JournalHead,
  keys: JSONWebKeySet,
): Promise<boolean> {
  const verified = await compactVerify(signature, createLocalJWKSet(keys), { algorithms: ['EdDSA'] }).catch(
    () => null,
  )
  if (verified === null || verified.protectedHeader.typ !== HEAD_TYPE) return false
  return Buffer.from(verified.payload).toString() === canonicalJson({ sequence: sequence.toString(), hash })
}
