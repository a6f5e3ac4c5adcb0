/**
 * Counts what tools/list costs a model: `npm run tokens`. No tokenizer is bundled; a token is taken as four characters of
 * the compact JSON, as is usual for English text and JSON with tokenizers of the GPT kind.
 */

import { toListedTool } from '../../mcp/listed-tool.ts'
import { createToolTerms } from '../../mcp/tool-terms.ts'
import { untrustedMembers } from '../../mcp/untrusted-members.ts'
import type { Scope } from '../../policies/scopes.ts'
import type { CatalogueEntry } from '../../src/kernel/catalogue.ts'

const CHARACTERS_PER_TOKEN = 4

/** Characters of the names, descriptions and input schemas that a grant of some scopes lists. */
export function listedCharacters(catalogue: readonly CatalogueEntry[], granted: readonly Scope[]): number {
  const inToolTerms = createToolTerms(catalogue)
  return catalogue
    .filter(({ tool }) => tool.mcp && tool.scopes.every((scope) => granted.includes(scope)))
    .map((entry) => toListedTool(entry, untrustedMembers(entry.output), inToolTerms))
    .map(({ name, description, inputSchema }) => JSON.stringify({ name, description, inputSchema }).length)
    .reduce((sum, length) => sum + length, 0)
}

/** Tokens of a tool. @property asked name, description and input schema. @property answered output schema. */
export interface ToolTokens {
  readonly name: string
  readonly asked: number
  readonly answered: number
}

/** Largest first. */
export function countTokens(catalogue: readonly CatalogueEntry[]): readonly ToolTokens[] {
  const inToolTerms = createToolTerms(catalogue)
  return catalogue
    .filter(({ tool }) => tool.mcp)
    .map((entry) => toListedTool(entry, untrustedMembers(entry.output), inToolTerms))
    .map(({ name, description, inputSchema, outputSchema }) => ({
      name,
      asked: estimateTokens({ name, description, inputSchema }),
      answered: estimateTokens(outputSchema),
    }))
    .sort((one, other) => other.asked - one.asked)
}

function estimateTokens(value: unknown): number {
  return Math.ceil(JSON.stringify(value).length / CHARACTERS_PER_TOKEN)
}
