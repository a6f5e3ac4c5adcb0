/**
 * Export format: the chain as JSON Lines for external storage and verification. A header with the public keys and the
 * chain heads, then one line per sealed decision in chain order, then one line per journal entry.
 */
import { z } from 'zod'
import { decisionContent } from '../../books/spending/decision-content.ts'
import { keySet } from './signing-key.ts'
import type { SealedDecision } from './store.ts'

const hash = z.string().regex(/^[0-9a-f]{64}$/)

/** @property start end of what was archived before. @property head last exported decision. @property journal last exported journal entry. */
export const exportHeader = z.strictObject({
  format: z.literal('bursar-decisions/1'),
  iss: z.string(),
  jwks: keySet,
  start: z.strictObject({ sequence: z.int().nonnegative(), hash }).optional(),
  head: z.strictObject({ sequence: z.int().nonnegative(), hash }),
  journal: z
    .strictObject({
      sequence: z.int().nonnegative(),
      hash,
      // JWS over sequence and hash by a key of the set; null if the exporting process had no key.
      signature: z.string().nullable(),
    })
    .optional(),
})

const exportLine = z.strictObject({
  sequence: z.int().positive(),
  previous: hash,
  hash,
  receipt: z.string(),
  decision: decisionContent,
})

export function headerLine(header: z.output<typeof exportHeader>): string {
  return `${JSON.stringify(header)}\n`
}

/** @throws Error when the decision has been deleted. */
export function formatLine({
  sequence,
  decisionId,
  previous,
  hash,
  receipt,
  content,
}: SealedDecision): string {
  if (content === null)
    throw new Error(
      `The decision ${decisionId} (sequence ${sequence}) is in the chain but has been deleted. Run "bursar audit verify".`,
    )
  return `${JSON.stringify({ sequence: Number(sequence), previous, hash, receipt, decision: content })}\n`
}

/** Returns null for invalid lines. */
export function parseLine(text: string): SealedDecision | null {
  const { success, data } = exportLine.safeParse(parseJsonText(text))
  if (!success) return null
  const { sequence, decision, ...seal } = data
  return { ...seal, sequence: BigInt(sequence), decisionId: decision.decisionId, content: decision }
}

/** Returns null for invalid headers. */
export function parseHeader(text: string): z.output<typeof exportHeader> | null {
  return exportHeader.safeParse(parseJsonText(text)).data ?? null
}

function parseJsonText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
