/** Reads an archive's files back: what is deleted from the database must be there, and prove itself by public keys alone. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createGunzip } from 'node:zlib'
import { compactVerify, createLocalJWKSet } from 'jose'
import { z } from 'zod'
import { decisionContent } from '../../books/spending/decision-content.ts'
import type { KeySet } from './signing-key.ts'
import type { SealedDecision } from './store.ts'
import { type AnchoredHead, type ChainHead, verifyChain } from './verify-chain.ts'
import { BUNDLE_FORMAT, MANIFEST_TYPE } from './write-bundle.ts'

const PAGE = 500

const manifest = z.object({
  format: z.literal(BUNDLE_FORMAT),
  from: z.string(),
  to: z.string(),
  chain: z.object({ first: z.int(), previous: z.string(), last: z.int(), head: z.string() }),
  files: z.record(
    z.string().regex(/^[a-z]+\.jsonl$/),
    z.object({ lines: z.int().nonnegative(), sha256: z.string() }),
  ),
})

const line = z.strictObject({
  sequence: z.int().positive(),
  hash: z.string(),
  content: z.string(),
  receipt: z.string(),
})

/** @property through where the chain is at the sequence that was asked for. */
export interface ArchiveReport {
  readonly from: string
  readonly first: bigint
  readonly last: bigint
  readonly decisions: number
  readonly manifestHash: string
  readonly through: ChainHead | null
}

/**
 * Verifies every file of an archive by its hash, and each hash and signature of its decisions. @param previous hash before its first
 * decision, if that is `start.sequence + 1`. @param through sequence whose hash is wanted. @param inspect
 * looks at each page of decisions, after its signatures. @throws Error naming the first fault.
 */
export async function verifyArchive(
  directory: string,
  {
    keySet,
    start,
    through,
    anchors = [],
    inspect = async () => {},
    progress = () => {},
  }: {
    keySet: KeySet
    start: ChainHead
    inspect?: (page: readonly (SealedDecision | null)[]) => Promise<void>
    through?: bigint
    anchors?: readonly AnchoredHead[]
    progress?: (verified: bigint) => void
  },
): Promise<ArchiveReport> {
  const text = await readText(directory)
  const { chain, files, from } = await readManifest(text, { directory, keySet })
  if (BigInt(chain.first) !== start.sequence + 1n || chain.previous !== start.hash)
    throw new Error(
      `${directory} begins at decision ${chain.first}, which does not continue ${start.sequence}: archives follow each other.`,
    )
  for (const [name, said] of Object.entries(files)) {
    const { lines, sha256 } = await hashFile(join(directory, `${name}.gz`))
    if (lines !== said.lines || sha256 !== said.sha256)
      throw new Error(
        `${directory}/${name}.gz is not the file that was signed: ${lines} lines for ${said.lines}.`,
      )
  }
  // An archive may take nothing out of the chain.
  let found: ChainHead | null = start.sequence === through ? start : null
  const watch = (head: ChainHead) => {
    if (head.sequence === through) found = head
  }
  const last = BigInt(chain.last)
  const pages = readDecisions(join(directory, 'decisions.jsonl.gz'), start.hash, watch)
  const report = await verifyChain(inspectPages(pages, inspect), {
    keySet,
    start,
    expected: { sequence: last, hash: chain.head },
    anchors: anchors.filter(({ sequence }) => sequence >= start.sequence && sequence <= last),
    progress,
  })
  const { fault } = report
  if (fault !== null)
    throw new Error(
      `${directory}: ${fault.decisionId ?? 'a decision'} (sequence ${fault.sequence}): ${fault.kind}: ${fault.detail}.`,
    )
  return {
    from,
    first: BigInt(chain.first),
    last,
    decisions: files['decisions.jsonl']?.lines ?? 0,
    manifestHash: hashText(text),
    through: found,
  }
}

/** The hash that the database has of an archive. @throws Error when the directory is none. */
export async function hashManifest(directory: string): Promise<string> {
  return hashText(await readText(directory))
}

function hashText(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function readText(directory: string): Promise<string> {
  return readFile(join(directory, 'manifest.jws'), 'utf8').catch((cause: unknown) => {
    throw new Error(`${directory} is no archive: it has no manifest.jws.`, { cause })
  })
}

async function readManifest(
  text: string,
  { directory, keySet }: { directory: string; keySet: KeySet },
): Promise<z.output<typeof manifest>> {
  const keys = createLocalJWKSet({ keys: [...keySet.keys] })
  const verified = await compactVerify(text.trim(), keys, { algorithms: ['EdDSA'] }).catch(() => null)
  if (verified?.protectedHeader.typ !== MANIFEST_TYPE)
    throw new Error(`${directory}/manifest.jws is not signed by a key of this gateway.`)
  return manifest.parse(JSON.parse(Buffer.from(verified.payload).toString()))
}

async function hashFile(path: string): Promise<{ lines: number; sha256: string }> {
  const hash = createHash('sha256')
  let lines = 0
  for await (const part of unzip(path)) {
    hash.update(part)
    for (const byte of part) if (byte === 10) lines += 1
  }
  return { lines, sha256: hash.digest('hex') }
}

/** Decompresses a file; an error of reading it is one of the result. */
function unzip(path: string): NodeJS.ReadableStream & AsyncIterable<Buffer> {
  const file = createReadStream(path)
  const unzipped = createGunzip()
  file.on('error', (error) => unzipped.destroy(error))
  return file.pipe(unzipped)
}

/** Reads the decisions in pages; null stands for an unreadable line. Each row links to the one before it. */
async function* readDecisions(
  path: string,
  start: string,
  watch: (head: ChainHead) => void,
): AsyncGenerator<(SealedDecision | null)[]> {
  let previous = start
  let page: (SealedDecision | null)[] = []
  for await (const text of createInterface({ input: unzip(path), crlfDelay: Number.POSITIVE_INFINITY })) {
    const row = parseRow(text, previous)
    page.push(row)
    if (row !== null) {
      previous = row.hash
      watch(row)
    }
    if (page.length < PAGE) continue
    yield page
    page = []
  }
  if (page.length > 0) yield page
}

async function* inspectPages<Page>(
  pages: AsyncIterable<Page>,
  inspect: (page: Page) => Promise<void>,
): AsyncGenerator<Page> {
  for await (const page of pages) {
    yield page
    await inspect(page)
  }
}

function parseRow(text: string, previous: string): SealedDecision | null {
  try {
    const { sequence, hash, content: written, receipt } = line.parse(JSON.parse(text))
    const content = decisionContent.parse(JSON.parse(written))
    return { sequence: BigInt(sequence), hash, previous, receipt, decisionId: content.decisionId, content }
  } catch {
    return null
  }
}
