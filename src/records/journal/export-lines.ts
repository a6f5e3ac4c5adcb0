/** Export lines of the journal, one per entry, after the decisions. */
import { z } from 'zod'
import { type ChainedEntry, entryContent } from './entry.ts'

const hash = z.string().regex(/^[0-9a-f]{64}$/)

const line = z.strictObject({
  journal: z.strictObject({ sequence: z.int().positive(), previous: hash, hash, entry: entryContent }),
})

export function journalLine({ sequence, previous, hash, content }: ChainedEntry): string {
  return `${JSON.stringify({ journal: { sequence: Number(sequence), previous, hash, entry: content } })}\n`
}

export function isJournalLine(text: string): boolean {
  return text.startsWith('{"journal":')
}

/** Returns null for invalid lines. */
export function parseJournalLine(text: string): ChainedEntry | null {
  const { success, data } = line.safeParse(parseJsonLine(text))
  if (!success) return null
  const { sequence, entry, ...chained } = data.journal
  return { ...chained, sequence: BigInt(sequence), mac: null, content: entry }
}

function parseJsonLine(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
