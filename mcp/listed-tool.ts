/** How a tool is listed: what clients see of it follows from its effect and its schemas. */
import type { CatalogueEntry } from '../src/kernel/catalogue.ts'
import type { Tool } from '../src/kernel/tool.ts'
import { idempotencyKeySchema } from './idempotency-key.ts'
import { untrustedNote } from './untrusted-members.ts'

/** A tool as clients see it. */
export interface ListedTool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: JsonObjectSchema
  readonly outputSchema: JsonObjectSchema
  readonly annotations: {
    readonly title: string
    readonly readOnlyHint: boolean
    readonly destructiveHint: boolean
    readonly idempotentHint: boolean
    readonly openWorldHint: boolean
  }
}

/** A JSON Schema of an object. */
type JsonObjectSchema = { type: 'object'; [keyword: string]: unknown }

/** Prepares the listing of a tool. @param foreign members of its answer that third parties wrote. */
export function listedAs(
  { tool, input, output }: CatalogueEntry,
  foreign: readonly string[],
  inToolTerms: (text: string) => string,
): ListedTool {
  const { properties, required, ...rest } = input
  const key = idempotencyKeySchema(tool)
  const members = { ...asRecord(properties), ...(key === null ? {} : { idempotency_key: key }) }
  const isSpend = tool.effect === 'spend'
  const needed = [...asNames(required), ...(isSpend ? ['idempotency_key'] : [])]
  return {
    name: tool.name.replaceAll('.', '_'),
    title: tool.title,
    description:
      inToolTerms([tool.summary, tool.description ?? []].flat().join(' ')) + untrustedNote(foreign),
    inputSchema: {
      ...described(rest, inToolTerms),
      type: 'object',
      properties: described(members, inToolTerms),
      ...(needed.length > 0 ? { required: needed } : {}),
    },
    outputSchema: { ...described(output, inToolTerms), type: 'object' },
    annotations: {
      title: tool.title,
      readOnlyHint: tool.effect === 'read',
      destructiveHint: isSpend,
      idempotentHint: isIdempotent(tool),
      openWorldHint: isSpend,
    },
  }
}

/** Whether the very same call, again, changes nothing more: a spend has its key, and a write what its method promises. */
function isIdempotent({ effect, route }: Tool): boolean {
  return effect !== 'write' || !route.startsWith('POST ')
}

function asRecord(value: unknown): Record<string, object> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function asNames(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : []
}

/** A schema whose descriptions name tools in place of routes. */
function described(schema: object, inToolTerms: (text: string) => string): Record<string, object> {
  return JSON.parse(JSON.stringify(schema), (name, value) =>
    name === 'description' && typeof value === 'string' ? inToolTerms(value) : value,
  )
}
