/** Reads and writes exports and key sets as files. */
import { readFileSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import type { z } from 'zod'
import { type exportHeader, parseHeader, parseLine } from '../records/decisions/export-lines.ts'
import { type KeySet, keySet } from '../records/decisions/signing-key.ts'
import type { SealedDecision } from '../records/decisions/store.ts'
import type { ChainedEntry } from '../records/journal/entry.ts'
import { isJournalLine, parseJournalLine } from '../records/journal/export-lines.ts'

const PAGE = 500

/** Writes a file atomically, readable by its owner only. */
export async function writeWhole(path: string, parts: AsyncIterable<string>): Promise<void> {
  const draft = `${path}.partial`
  const file = await open(draft, 'w', 0o600)
  try {
    for await (const part of parts) await file.write(part)
    await file.close()
    await rename(draft, path)
  } catch (error) {
    await file.close().catch(() => {})
    await rm(draft, { force: true })
    throw error
  }
}

export interface ExportFile {
  readonly header: z.output<typeof exportHeader>
  /** Rows in pages; null stands for an unreadable line. */
  readonly pages: AsyncIterable<(SealedDecision | null)[]>
  /** Journal entries, complete after all pages were read; null stands for an unreadable line. */
  readonly entries: readonly (ChainedEntry | null)[]
}

/** @throws Error naming the file when it is not an export. */
export async function openExport(path: string): Promise<ExportFile> {
  const file = await open(path, 'r').catch((cause: unknown) => {
    throw new Error(`${path}: cannot be read.`, { cause })
  })
  const lines = file.readLines()[Symbol.asyncIterator]()
  const first = await lines.next()
  const header = first.done === true ? null : parseHeader(first.value)
  if (header === null) {
    await file.close()
    throw new Error(`${path}: not an export of decisions. Create one with "bursar audit export --out FILE".`)
  }
  const entries: (ChainedEntry | null)[] = []
  return { header, pages: readPages(lines, entries), entries }
}

async function* readPages(
  lines: AsyncIterator<string>,
  entries: (ChainedEntry | null)[],
): AsyncGenerator<(SealedDecision | null)[]> {
  for (;;) {
    const page: (SealedDecision | null)[] = []
    let isEnded = false
    while (page.length < PAGE && !isEnded) {
      const { done, value } = await lines.next()
      isEnded = done === true
      if (done === true) break
      if (isJournalLine(value)) entries.push(parseJournalLine(value))
      else page.push(parseLine(value))
    }
    if (page.length > 0) yield page
    if (isEnded) return
  }
}

/** @throws Error naming the file when it is not a JWK Set. */
export function readKeySet(path: string): KeySet {
  try {
    return keySet.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch (cause) {
    throw new Error(`${path}: not a JWK Set of Ed25519 keys. GET /.well-known/jwks.json returns one.`, {
      cause,
    })
  }
}
