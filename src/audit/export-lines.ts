/**
 * Exports: the chain as JSON Lines, to be kept and verified elsewhere. First a header with the public keys and where the
 * chain ended, then one line a sealed decision in the order of the chain, then one line an entry of the journal.
 */
import { z } from 'zod'
import { decisionContent } from '../spending/decision-content.ts'
import { keySet } from './signing-key.ts'
import type { SealedDecision } from './store.ts'

const hash = z.string().regex(/^[0-9a-f]{64}$/)

/** The first line. @property head the last row that the export has. @property journal the last entry. */
export const exportHeader = z.strictObject({
  format: z.literal('bursar-decisions/1'),
  iss: z.string(),
  jwks: keySet,
  head: z.strictObject({ sequence: z.int().nonnegative(), hash }),
  journal: z
    .strictObject({
      sequence: z.int().nonnegative(),
      hash,
      // A JWS over the two by a key of the set; null where the exporting process had no key.
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

/** A header's line. */
export function headerLine(header: z.output<typeof exportHeader>): string {
  return `${JSON.stringify(header)}\n`
}

/** A sealed decision's line. @throws Error where the decision is gone. */
export function lineOf({ sequence, decisionId, previous, hash, receipt, content }: SealedDecision): string {
  if (content === null)
    throw new Error(
      `The decision ${decisionId} (sequence ${sequence}) is in the chain and gone. Run "bursar audit verify".`,
    )
  return `${JSON.stringify({ sequence: Number(sequence), previous, hash, receipt, decision: content })}\n`
}

/** The sealed decision of a line; null where it is none. */
export function parseLine(text: string): SealedDecision | null {
  const { success, data } = exportLine.safeParse(parsed(text))
  if (!success) return null
  const { sequence, decision, ...seal } = data
  return { ...seal, sequence: BigInt(sequence), decisionId: decision.decisionId, content: decision }
}

/** The header of a first line; null where it is none. */
export function parseHeader(text: string): z.output<typeof exportHeader> | null {
  return exportHeader.safeParse(parsed(text)).data ?? null
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
