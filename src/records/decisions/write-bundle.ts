/**
 * Books that a stranger can recompute: what was decided, held, posted and paid in a period, as files of JSON Lines, and a signed manifest
 * that names each of them by its hash. docs/verify/ has the format on one page and a verifier that shares no code with the gateway.
 */
import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { sql } from 'kysely'
import { canonicalContent } from '../../books/spending/decision-content.ts'
import { utcDay } from '../../core/base/clock.ts'
import { canonicalJson, toJson } from '../../core/base/json.ts'
import { signJws } from '../../core/base/jws.ts'
import type { Connection, Database } from '../../storage/database.ts'
import { readConfirmedAnchors } from './anchor-store.ts'
import { readArchiveEnd, startOfNext } from './archive-store.ts'
import {
  hasLater,
  type IdSpan,
  policyPages,
  postingPages,
  readAheadMs,
  readFirstUnsealed,
  readSequences,
  type Span,
  spendPages,
  usagePages,
  withIds,
} from './bundle-store.ts'
import { readKeySet } from './receipt-keys.ts'
import type { SigningKey } from './signing-key.ts'
import { readSealed, type SealedDecision } from './store.ts'

export const BUNDLE_FORMAT = 'bursar-books/1'
export const MANIFEST_TYPE = 'bursar-books+jws'

export interface BundleReport {
  readonly to: Date
  readonly decisions: number
  readonly postings: number
}

/** Where decisions lie in the chain, inclusive. */
interface Ends {
  readonly first: bigint
  readonly last: bigint
}

/**
 * @property issuer the gateway's origin. @property isCompressed each file but the manifest with gzip, named `….gz`. @property chain must be
 * in it, besides the decisions of the period.
 */
export interface BundleOptions {
  readonly issuer: string
  readonly key: SigningKey
  readonly dataKey: Uint8Array
  readonly period: Span
  readonly now: Date
  readonly progress: (file: string, lines: number) => void
  readonly isCompressed?: boolean
  readonly chain?: Ends
}

interface Part {
  readonly name: string
  readonly lines: AsyncIterable<readonly string[]> | Iterable<readonly string[]>
}

/**
 * Writes the bundle of a period into an empty directory, from one snapshot of the database. A period that is not over ends where the
 * first decision waits for its seal, or now. @throws Error when nothing of it has passed yet, or some of it was archived.
 */
export function writeBundle(
  database: Database,
  directory: string,
  options: BundleOptions,
): Promise<BundleReport> {
  return database.transaction(async (snapshot) => {
    await sql`set transaction isolation level repeatable read`.execute(snapshot.kysely)
    const { month } = await readArchiveEnd(snapshot)
    if (month !== null && options.period.from < startOfNext(month))
      throw new Error(
        `Decisions until the end of ${month} have been archived: that month's archive has its books, and those before theirs.`,
      )
    return writeSnapshot(snapshot, directory, options)
  })
}

/** Writes it from a transaction that sees one moment. */
export async function writeSnapshot(
  snapshot: Connection,
  directory: string,
  { issuer, key, dataKey, period, now, progress, isCompressed = false, chain }: BundleOptions,
): Promise<BundleReport> {
  // Decisions have the calendar's time.
  const span = await cutSpan(snapshot, period, new Date(now.getTime() + (await readAheadMs(snapshot))))
  const found = await readSequences(snapshot, span)
  const ends = chain === undefined ? found : widen(found ?? chain, chain)
  const files: Record<string, { lines: number; sha256: string }> = {}
  for (const { name, lines } of listParts(snapshot, span, ends))
    files[name] = await writeLines(join(directory, isCompressed ? `${name}.gz` : name), lines, {
      progress: (count) => progress(name, count),
      isCompressed,
    })
  const manifest = canonicalJson(
    toJson({
      format: BUNDLE_FORMAT,
      iss: issuer,
      from: span.from.toISOString(),
      to: span.to.toISOString(),
      madeAt: now.toISOString(),
      isCut: await hasLater(snapshot, span),
      chain: ends === null ? null : await readEnds(snapshot, ends),
      files,
      jwks: await readKeySet(snapshot, dataKey),
    }),
  )
  const signed = await signJws(key, { type: MANIFEST_TYPE, payload: manifest })
  await writeLines(join(directory, 'manifest.jws'), [[signed]], { progress: () => {}, isCompressed: false })
  return {
    to: span.to,
    decisions: files['decisions.jsonl']?.lines ?? 0,
    postings: files['postings.jsonl']?.lines ?? 0,
  }
}

function widen(one: Ends, other: Ends): Ends {
  return {
    first: one.first - other.first < 0n ? one.first : other.first,
    last: one.last - other.last > 0n ? one.last : other.last,
  }
}

function listParts(
  snapshot: Connection,
  span: IdSpan,
  ends: { readonly first: bigint; readonly last: bigint } | null,
): readonly Part[] {
  const balances: Balances = new Map()
  return [
    {
      name: 'decisions.jsonl',
      lines: ends === null ? [] : map(sealedBetween(snapshot, ends), formatDecision),
    },
    { name: 'spends.jsonl', lines: map(spendPages(snapshot, span), format) },
    { name: 'usage.jsonl', lines: map(usagePages(snapshot, span), format) },
    { name: 'policies.jsonl', lines: policyLines(snapshot) },
    { name: 'postings.jsonl', lines: postingLines(snapshot, span, balances) },
    { name: 'balances.jsonl', lines: balanceLines(balances) },
    { name: 'anchors.jsonl', lines: ends === null ? [] : anchorLines(snapshot, span, ends) },
  ]
}

async function cutSpan(snapshot: Connection, { from, to }: Span, now: Date): Promise<IdSpan> {
  const end = to < now ? to : now
  if (end <= from) throw new Error(`Nothing has happened yet: the period begins on ${from.toISOString()}.`)
  const whole = withIds({ from, to: end })
  const waiting = await readFirstUnsealed(snapshot, whole)
  if (waiting === null) return whole
  if (to >= now && waiting > from) return withIds({ from, to: waiting })
  throw new Error(
    `A decision of ${waiting.toISOString()} is not sealed yet. A running gateway seals within seconds; what it refuses to seal, "bursar audit verify" names.`,
  )
}

async function* sealedBetween(
  snapshot: Connection,
  { first, last }: { readonly first: bigint; readonly last: bigint },
): AsyncGenerator<readonly SealedDecision[]> {
  for (let after = first - 1n; after < last; ) {
    const page = await readSealed(snapshot, { after, limit: 500 })
    yield page.filter(({ sequence }) => sequence <= last)
    after = page.at(-1)?.sequence ?? last
  }
}

async function readEnds(snapshot: Connection, { first, last }: { first: bigint; last: bigint }) {
  const [start] = await readSealed(snapshot, { after: first - 1n, limit: 1 })
  const [end] = await readSealed(snapshot, { after: last - 1n, limit: 1 })
  return { first: Number(first), previous: start?.previous, last: Number(last), head: end?.hash }
}

/** The content as its canonical text, which is what its hash covers: whoever reads it need not write canonical JSON. */
function formatDecision({ sequence, decisionId, hash, receipt, content }: SealedDecision): string {
  if (content === null)
    throw new Error(
      `The decision ${decisionId} (sequence ${sequence}) is in the chain but has been deleted. Run "bursar audit verify".`,
    )
  return JSON.stringify({ sequence: Number(sequence), hash, content: canonicalContent(content), receipt })
}

/** Each policy once, by its hash. */
async function* policyLines(snapshot: Connection): AsyncGenerator<readonly string[]> {
  const known = new Set<string>()
  for await (const page of policyPages(snapshot)) {
    const texts = page.map(({ policy }) => canonicalJson(policy))
    const fresh = [...new Set(texts)].filter((text) => !known.has(hashText(text)))
    for (const text of fresh) known.add(hashText(text))
    yield fresh.map((text) => JSON.stringify({ hash: hashText(text), policy: text }))
  }
}

/** By ledger account and asset: the balance at the start of the period and at its end. */
type Balances = Map<
  string,
  { readonly account: string; readonly asset: string; opening: bigint; closing: bigint }
>

/** The postings of the period. All before it are read too, for the balances. */
async function* postingLines(
  snapshot: Connection,
  { from, to }: Span,
  balances: Balances,
): AsyncGenerator<readonly string[]> {
  for await (const page of postingPages(snapshot, to)) {
    for (const { source, destination, asset, units, at } of page) {
      change(balances, { account: source, asset, units: -units, isBefore: at < from })
      change(balances, { account: destination, asset, units, isBefore: at < from })
    }
    yield page.filter(({ at }) => at >= from).map(format)
  }
}

function change(
  balances: Balances,
  { account, asset, units, isBefore }: { account: string; asset: string; units: bigint; isBefore: boolean },
): void {
  const name = `${account} ${asset}`
  const balance = balances.get(name) ?? { account, asset, opening: 0n, closing: 0n }
  balance.closing += units
  if (isBefore) balance.opening += units
  balances.set(name, balance)
}

function* balanceLines(balances: Balances): Generator<readonly string[]> {
  const sorted = [...balances].sort(([one], [other]) => (one < other ? -1 : 1))
  yield sorted.map(([, balance]) => format(balance))
}

/** The anchored heads of the period's days. Before its first decision, that is the last one before it. */
async function* anchorLines(
  snapshot: Connection,
  { from, to }: Span,
  { first, last }: { readonly first: bigint; readonly last: bigint },
): AsyncGenerator<readonly string[]> {
  const days = { from: utcDay(from), to: utcDay(new Date(to.getTime() - 1)) }
  const anchors = await readConfirmedAnchors(snapshot, { ...days, first: first - 1n, last })
  yield anchors.map((anchor) => format({ ...anchor, sequence: Number(anchor.sequence) }))
}

function hashText(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** Whole numbers are texts: they may be greater than other programs' numbers. */
function format(row: object): string {
  return JSON.stringify(row, (_name, value: unknown) =>
    typeof value === 'bigint' ? value.toString() : value,
  )
}

async function* map<Row>(
  pages: AsyncIterable<readonly Row[]>,
  write: (row: Row) => string,
): AsyncGenerator<readonly string[]> {
  for await (const page of pages) yield page.map(write)
}

/** Writes a file through to the disk. The hash is of its text, compressed or not. @throws Error when the file exists. */
async function writeLines(
  path: string,
  pages: Part['lines'],
  { progress, isCompressed }: { progress: (lines: number) => void; isCompressed: boolean },
): Promise<{ lines: number; sha256: string }> {
  const hash = createHash('sha256')
  const file = await open(path, 'wx', 0o600)
  let count = 0
  try {
    const texts = async function* () {
      for await (const page of pages) {
        const text = page.map((line) => `${line}\n`).join('')
        hash.update(text)
        yield text
        count += page.length
        progress(count)
      }
    }
    const write = async (parts: AsyncIterable<string | Uint8Array>) => {
      for await (const part of parts) await file.writeFile(part)
    }
    await (isCompressed ? pipeline(texts, createGzip(), write) : write(texts()))
    await file.sync()
  } finally {
    await file.close()
  }
  return { lines: count, sha256: hash.digest('hex') }
}
