/** `bursar audit export | verify`: exports the decision chain, and verifies it without trusting the gateway. */
import { existsSync } from 'node:fs'
import { systemClock } from '../core/base/clock.ts'
import { readAnchoredHeads } from '../records/decisions/anchor-store.ts'
import { hashManifest, verifyArchive } from '../records/decisions/archive-files.ts'
import {
  type Archive,
  compareKept,
  countKept,
  findArchiveEnd,
  readArchiveEnd,
  readArchives,
} from '../records/decisions/archive-store.ts'
import { formatLine, headerLine } from '../records/decisions/export-lines.ts'
import { auditUnsealed } from '../records/decisions/judge-decision.ts'
import type { KeySet } from '../records/decisions/signing-key.ts'
import { readHead, type SealedDecision, sealedPages } from '../records/decisions/store.ts'
import { type AnchoredHead, type ChainReport, verifyChain } from '../records/decisions/verify-chain.ts'
import { type ChainedEntry, FIRST_PREVIOUS } from '../records/journal/entry.ts'
import { journalLine } from '../records/journal/export-lines.ts'
import { journalPages, readJournalHead } from '../records/journal/read.ts'
import { isSignedHead, type JournalReport, signHead, verifyJournal } from '../records/journal/verify.ts'
import type { Database } from '../storage/database.ts'
import { findIssuer, loadKeySet, onAuditDatabase, readDataKey, withSigningKey } from './audit-database.ts'
import { openExport, readKeySet, writeWhole } from './audit-files.ts'
import { verifyPurchase } from './audit-purchase.ts'

export interface AuditOptions {
  readonly out?: string | undefined
  readonly jwks?: string | undefined
  readonly 'from-export'?: string | undefined
  /** Journal head printed by an earlier verification. */
  readonly 'journal-head'?: string | undefined
  /** The arguments are directories of archives. */
  readonly archives?: boolean | undefined
  /** URL of a node, for the evidence of a purchase. */
  readonly rpc?: string | undefined
}

type Env = Readonly<Record<string, string | undefined>>

const usage =
  'Usage: bursar audit export --out FILE | audit verify [--from-export FILE] [--jwks FILE] [--journal-head HASH] [--archives DIRECTORY…] | audit verify-purchase FILE [--jwks FILE] [--rpc URL]'

/** @returns the exit code: 0, or 1 when the chain is not intact. @throws Error with the usage. */
export async function audit(
  [action, ...rest]: readonly string[],
  options: AuditOptions,
  env: Env,
): Promise<number> {
  if (action === 'verify-purchase') {
    const [path, ...others] = rest
    if (path === undefined || others.length > 0) throw new Error(usage)
    return verifyPurchase(path, { jwks: options.jwks, rpc: options.rpc })
  }
  if (rest.length > 0 && (action !== 'verify' || options.archives !== true)) throw new Error(usage)
  if (action === 'export' && options.out !== undefined) return exportChain(options.out, options, env)
  if (action !== 'verify' || options.out !== undefined) throw new Error(usage)
  if (!/^[0-9a-f]{64}$/.test(options['journal-head'] ?? FIRST_PREVIOUS))
    throw new Error('--journal-head must be a hash of 64 hex digits, as "bursar audit verify" prints it.')
  if (options.archives === true && rest.length === 0)
    throw new Error('--archives needs the directories of the archives.')
  const path = options['from-export']
  if (path === undefined) return verifyDatabase(rest, options, env)
  if (rest.length > 0) throw new Error(usage)
  return verifyExport(path, options, env)
}

async function exportChain(out: string, { jwks }: AuditOptions, env: Env): Promise<number> {
  if (existsSync(out)) throw new Error(`${out} exists. An export never replaces a file.`)
  return onAuditDatabase(env, async (database, config) => {
    const keys = jwks === undefined ? await loadKeySet(database, config) : readKeySet(jwks)
    const iss = await findIssuer(database, config)
    const { sequence, hash } = await readHead(database)
    const head = { sequence: Number(sequence), hash }
    const end = await readArchiveEnd(database)
    const start = end.month === null ? {} : { start: { sequence: Number(end.sequence), hash: end.hash } }
    const journal = await readJournalHead(database)
    const signature = await withSigningKey(database, config, async (own) =>
      own === null ? null : signHead(own.receiptKey, journal),
    )
    await writeWhole(
      out,
      exportParts(
        database,
        headerLine({
          format: 'bursar-decisions/1',
          iss,
          jwks: keys,
          ...start,
          head,
          journal: { sequence: Number(journal.sequence), hash: journal.hash, signature },
        }),
        { start: end.sequence, decisions: sequence, entries: journal.sequence },
      ),
    )
    process.stdout.write(
      `${formatCount(sequence - end.sequence, 'decision')} exported to ${out}\nHead: ${sequence} ${hash}\nJournal: ${formatCount(journal.sequence, 'change')} exported\n`,
    )
    return 0
  })
}

async function* exportParts(
  database: Database,
  header: string,
  until: { readonly start: bigint; readonly decisions: bigint; readonly entries: bigint },
): AsyncGenerator<string> {
  const showProgress = createProgress('exported')
  yield header
  for await (const page of sealedPages(database, { start: until.start, until: until.decisions })) {
    yield page.map(formatLine).join('')
    showProgress(page.at(-1)?.sequence ?? 0n)
  }
  for await (const page of journalPages(database, until.entries)) yield page.map(journalLine).join('')
}

function verifyDatabase(
  given: readonly string[],
  { jwks, 'journal-head': through }: AuditOptions,
  env: Env,
): Promise<number> {
  return onAuditDatabase(env, async (database, config) => {
    const keySet = jwks === undefined ? await loadKeySet(database, config) : readKeySet(jwks)
    const anchors = await readAnchoredHeads(database)
    const progress = createProgress('verified')
    const dataKey = await readDataKey(database, config)
    const archives = await readArchives(database, dataKey)
    const start = findArchiveEnd(archives)
    if (dataKey === null && archives.length > 0 && given.length === 0)
      throw new Error(
        'DATA_KEY is not set, and without it deleted decisions could pass for archived ones: set it, or verify the archives with --archives.',
      )
    const compared = given.length > 0 ? anchors : anchors.filter(({ sequence }) => sequence >= start.sequence)
    if (given.length > 0) await verifyArchives(given, { database, archives, keySet, anchors, progress })
    const report = await verifyChain(sealedPages(database, { start: start.sequence }), {
      keySet,
      start,
      expected: await readHead(database),
      anchors: anchors.filter(({ sequence }) => sequence >= start.sequence),
      progress,
    })
    const { count, refused } = await auditUnsealed(database, { dataKey, now: systemClock() })
    const decisions = printReport(report, env, {
      start: given.length > 0 ? 0n : start.sequence,
      more: [
        ...(start.month === null
          ? []
          : [
              `${groupDigits(start.sequence)} of them archived until ${start.month}${given.length > 0 ? ' and verified' : ''}`,
            ]),
        ...(compared.length > 0 ? [`${formatCount(BigInt(compared.length), 'anchored head')} compared`] : []),
        ...(count > 0n ? [`${groupDigits(count)} not sealed yet`] : []),
      ],
    })
    const journal = printJournalReport(await verifyJournal(journalPages(database), { dataKey, through }), env)
    const code = decisions === 0 ? journal : decisions
    if (refused.length === 0) return code
    process.stdout.write(
      `Not signed, because no gateway has authenticated them:\n${refused.map(({ id, why }) => `  ${id}: ${why}\n`).join('')}`,
    )
    return 1
  })
}

/** Verifies the archives of all months that left, in any order. @throws Error naming what is missing, wrong or of no month. */
async function verifyArchives(
  given: readonly string[],
  {
    database,
    archives,
    ...options
  }: {
    database: Database
    archives: readonly Archive[]
    keySet: KeySet
    anchors: readonly AnchoredHead[]
    progress: (count: bigint) => void
  },
): Promise<void> {
  const directories = new Map<string, string>()
  let known = 0n
  for (const directory of given) directories.set(await hashManifest(directory), directory)
  for (const { month, manifestHash } of archives)
    if (!directories.has(manifestHash))
      throw new Error(`The directory of the archive of ${month} is missing.`)
  for (const { month, previous, first, last, hash, manifestHash } of archives) {
    const directory = directories.get(manifestHash) ?? ''
    directories.delete(manifestHash)
    const start = { sequence: first - 1n, hash: previous }
    const inspect = async (page: readonly (SealedDecision | null)[]) => {
      // Those after it have stayed.
      const left = page.flatMap((row) => (row?.content && row.sequence <= last ? [row.content] : []))
      const { kept, changed } = await compareKept(database, left)
      known += kept
      if (changed !== null)
        throw new Error(`What histories show of ${changed} is not what its archive, ${directory}, says.`)
    }
    const report = await verifyArchive(directory, { ...options, start, through: last, inspect })
    if (report.through?.hash !== hash)
      throw new Error(`${directory} is not the archive of ${month} that this database names.`)
  }
  const [other] = directories.values()
  if (other !== undefined) throw new Error(`${other} is no archive that this database names.`)
  const others = (await countKept(database)) - known
  if (others > 0n)
    throw new Error(`Histories show ${formatCount(others, 'archived decision')} that no archive has.`)
}

async function verifyExport(
  path: string,
  { jwks, 'journal-head': through }: AuditOptions,
  env: Env,
): Promise<number> {
  const { header, pages, entries } = await openExport(path)
  const keySet: KeySet = jwks === undefined ? header.jwks : readKeySet(jwks)
  const expected = { sequence: BigInt(header.head.sequence), hash: header.head.hash }
  const start =
    header.start === undefined
      ? {}
      : { start: { sequence: BigInt(header.start.sequence), hash: header.start.hash } }
  const report = await verifyChain(pages, {
    ...{ keySet, ...start, expected },
    progress: createProgress('verified'),
  })
  const decisions = printReport(report, env, { start: start.start?.sequence ?? 0n, more: [] })
  const journal = await verifyExportedJournal(entries, header.journal, { keySet, through, env })
  const code = decisions === 0 ? journal : decisions
  if (jwks === undefined)
    process.stderr.write(
      'Verified with the keys in the export itself. To verify independently, pass a copy of /.well-known/jwks.json with --jwks FILE.\n',
    )
  return code
}

/** Old exports have no journal. */
async function verifyExportedJournal(
  entries: readonly (ChainedEntry | null)[],
  header: { sequence: number; hash: string; signature: string | null } | undefined,
  { keySet, through, env }: { keySet: KeySet; through: string | undefined; env: Env },
): Promise<number> {
  if (header === undefined && entries.length === 0 && through === undefined) return 0
  const expected = { sequence: BigInt(header?.sequence ?? 0), hash: header?.hash ?? '' }
  const report = await verifyJournal([entries], { dataKey: null, expected, through })
  const signature = header?.signature ?? null
  const isSigned = signature !== null && (await isSignedHead(signature, expected, keySet))
  if (report.fault !== null || isSigned || entries.length === 0) return printJournalReport(report, env)
  const detail = 'its end is not signed by one of the keys'
  return printJournalReport({ ...report, fault: { sequence: expected.sequence, detail } }, env)
}

/** Prints the journal report. @returns the exit code. */
function printJournalReport({ head, fault }: JournalReport, env: Env): number {
  const isColoured = process.stdout.isTTY && env.NO_COLOR === undefined
  const paint = (code: number, text: string) => (isColoured ? `\u001b[${code}m${text}\u001b[0m` : text)
  const text =
    fault === null
      ? `Journal: ${formatCount(head.sequence, 'change')}, ${paint(32, 'chain intact')}, head ${head.sequence} ${head.hash}`
      : `${paint(31, `Journal broken at entry ${fault.sequence}`)}: ${fault.detail}.`
  process.stdout.write(`${text}\n`)
  return fault === null ? 0 : 1
}

/** Prints the chain report. @returns the exit code. */
function printReport(
  { head, fault }: ChainReport,
  env: Env,
  { start, more }: { start: bigint; more: readonly string[] },
): number {
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
  const isColoured = process.stdout.isTTY && env.NO_COLOR === undefined
  const paint = (code: number, text: string) => (isColoured ? `\u001b[${code}m${text}\u001b[0m` : text)
  if (fault !== null) {
    const row = `${fault.decisionId ?? 'a decision'} (sequence ${fault.sequence})`
    process.stdout.write(
      `${paint(31, `Broken at ${row}: ${fault.kind}`)}: ${fault.detail}.\n${formatCount(head.sequence, 'decision')} before it verified.\n`,
    )
    return 1
  }
  const parts = [
    formatCount(head.sequence, 'decision'),
    paint(32, 'chain intact'),
    `${formatCount(head.sequence - start, 'signature')} verified`,
    ...more,
  ]
  process.stdout.write(`${parts.join(', ')}\nHead: ${head.sequence} ${head.hash}\n`)
  return 0
}

/** Shows progress on terminals only. */
function createProgress(done: string): (count: bigint) => void {
  if (!process.stderr.isTTY) return () => {}
  return (count) => void process.stderr.write(`\r\u001b[K${groupDigits(count)} ${done}\r`)
}

function formatCount(count: bigint, what: string): string {
  return `${groupDigits(count)} ${what}${count === 1n ? '' : 's'}`
}

function groupDigits(count: bigint): string {
  return count.toLocaleString('en-US')
}
