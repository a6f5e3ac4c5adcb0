/** Verifies every hash, link, signature and receipt of a chain from any source. */
import { compactVerify, createLocalJWKSet } from 'jose'
import { canonicalJson } from '../../core/base/json.ts'
import type { Connection } from '../../storage/database.ts'
import type { Anchor } from './anchor-store.ts'
import { readArchiveEnd } from './archive-store.ts'
import { chainHash, FIRST_PREVIOUS } from './chain.ts'
import { RECEIPT_TYPE, receiptClaims } from './receipt.ts'
import type { KeySet } from './signing-key.ts'
import { readHead, readSealed, type SealedDecision } from './store.ts'

export interface ChainHead {
  readonly sequence: bigint
  readonly hash: string
}

/** The first invalid row. @property decisionId null if the row does not name one. */
export interface ChainFault {
  readonly sequence: bigint
  readonly decisionId: string | null
  readonly kind:
    | 'content changed'
    | 'link broken'
    | 'row missing'
    | 'row unreadable'
    | 'signature invalid'
    | 'receipt contradicts'
    | 'anchor contradicts'
  readonly detail: string
}

/** @property head last verified row. */
export interface ChainReport {
  readonly head: ChainHead
  readonly fault: ChainFault | null
}

export type AnchoredHead = Pick<Anchor, 'day' | 'sequence' | 'hash'>

type ReceiptFault = Pick<ChainFault, 'kind' | 'detail'> | null

/**
 * Verifies a chain from its first row, and stops at the first fault. @param pages rows in order; null stands for an
 * unreadable row. @param start the end of what was archived; by default nothing. @param expected where the rows must end, if known. @param anchors heads that were written on a blockchain. @param progress
 * called after each page.
 */
export async function verifyChain(
  pages: AsyncIterable<readonly (SealedDecision | null)[]>,
  {
    keySet,
    start = { sequence: 0n, hash: FIRST_PREVIOUS },
    expected = null,
    anchors = [],
    progress = () => {},
  }: {
    keySet: KeySet
    start?: ChainHead
    expected?: ChainHead | null
    anchors?: readonly AnchoredHead[]
    progress?: (verified: bigint) => void
  },
): Promise<ChainReport> {
  const keys = createLocalJWKSet({ keys: [...keySet.keys] })
  const anchored = groupBySequence(anchors)
  let head = start
  const atStart = (anchored.get(start.sequence) ?? []).find(({ hash }) => hash !== start.hash)
  if (atStart !== undefined) return { head, fault: checkEnd(head, atStart) }
  for await (const page of pages) {
    const receiptFaults = await Promise.all(
      page.map((row) => (row === null ? null : checkReceipt(row, keys))),
    )
    for (const [at, row] of page.entries()) {
      const fault =
        checkRow(row, head, receiptFaults[at] ?? null) ?? checkAnchors(row, anchored.get(row?.sequence ?? 0n))
      if (fault !== null) return { head, fault }
      if (row !== null) head = { sequence: row.sequence, hash: row.hash }
    }
    progress(head.sequence)
  }
  const beyond = anchors.find(({ sequence }) => sequence > head.sequence)
  if (beyond !== undefined)
    return { head, fault: checkEnd(head, beyond, `, the head of ${beyond.day} that is anchored`) }
  return { head, fault: expected === null ? null : checkEnd(head, expected) }
}

/** Verifies the newest stored row against the previous one, which is trusted. */
export async function verifyNewest(database: Connection, keySet: KeySet): Promise<ChainFault | null> {
  const { sequence } = await readHead(database)
  const rows = await readSealed(database, { after: sequence - 2n, limit: 2 })
  const row = rows.at(-1)
  if (row === undefined) return null
  const before = rows.at(-2) ?? (await readArchiveEnd(database))
  const receiptFault = await checkReceipt(row, createLocalJWKSet({ keys: [...keySet.keys] }))
  return checkRow(row, before, receiptFault)
}

/** Checks a row against the verified head. */
function checkRow(
  row: SealedDecision | null,
  head: ChainHead,
  receiptFault: ReceiptFault,
): ChainFault | null {
  const due = head.sequence + 1n
  if (row === null)
    return { sequence: due, decisionId: null, kind: 'row unreadable', detail: 'it cannot be parsed' }
  const { sequence, decisionId, content } = row
  if (sequence > due)
    return {
      sequence: due,
      decisionId: null,
      kind: 'row missing',
      detail: `the next row is ${sequence} (${decisionId})`,
    }
  const buildFault = (kind: ChainFault['kind'], detail: string) => ({ sequence, decisionId, kind, detail })
  if (sequence < due) return buildFault('link broken', `it is at the position of ${due}`)
  if (content === null)
    return buildFault('row missing', 'it is in the chain, but the decision has been deleted')
  if (row.previous !== head.hash)
    return buildFault('link broken', 'its previous hash is not the hash of the row before it')
  if (chainHash(row.previous, content) !== row.hash)
    return buildFault('content changed', 'its content does not match its hash in the chain')
  return receiptFault === null ? null : buildFault(receiptFault.kind, receiptFault.detail)
}

function groupBySequence(anchors: readonly AnchoredHead[]): ReadonlyMap<bigint, readonly AnchoredHead[]> {
  const groups = new Map<bigint, AnchoredHead[]>()
  for (const anchor of anchors) {
    const group = groups.get(anchor.sequence)
    if (group === undefined) groups.set(anchor.sequence, [anchor])
    else group.push(anchor)
  }
  return groups
}

/** Compares a verified row with the anchors of its sequence. */
function checkAnchors(row: SealedDecision | null, anchors: readonly AnchoredHead[] = []): ChainFault | null {
  const other = anchors.find(({ hash }) => hash !== row?.hash)
  if (row === null || other === undefined) return null
  const { sequence, decisionId } = row
  const detail = `the head of ${other.day} was anchored with the hash ${other.hash}`
  return { sequence, decisionId, kind: 'anchor contradicts', detail }
}

async function checkReceipt(
  { receipt, content }: SealedDecision,
  keys: ReturnType<typeof createLocalJWKSet>,
): Promise<ReceiptFault> {
  const verified = await compactVerify(receipt, keys, { algorithms: ['EdDSA'] }).catch((error: unknown) =>
    error instanceof Error ? error.message : String(error),
  )
  if (typeof verified === 'string') return { kind: 'signature invalid', detail: verified }
  if (verified.protectedHeader.typ !== RECEIPT_TYPE)
    return { kind: 'signature invalid', detail: `its type is not ${RECEIPT_TYPE}` }
  if (content === null) return null
  const { iss, ...claims }: Record<string, unknown> = JSON.parse(Buffer.from(verified.payload).toString())
  if (typeof iss === 'string' && canonicalJson(claims) === canonicalJson(receiptClaims(content))) return null
  return { kind: 'receipt contradicts', detail: 'its signed receipt has different content' }
}

function checkEnd(head: ChainHead, expected: ChainHead, why = ''): ChainFault | null {
  if (head.sequence < expected.sequence)
    return {
      sequence: head.sequence + 1n,
      decisionId: null,
      kind: 'row missing',
      detail: `the rows must ${why === '' ? 'end with' : 'reach'} ${expected.sequence}${why}`,
    }
  if (head.sequence === expected.sequence && head.hash === expected.hash) return null
  return {
    sequence: head.sequence,
    decisionId: null,
    kind: 'link broken',
    detail: `the rows must end with ${expected.sequence} and its hash`,
  }
}
