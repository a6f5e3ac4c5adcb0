/** Builds the tools/list entry of a tool from its effect and schemas. */
import type { CatalogueEntry, JsonSchema } from '../src/kernel/catalogue.ts'
import type { Tool } from '../src/kernel/tool.ts'
import { compactSchema, shareShapes } from './compact-schema.ts'
import { idempotencyKeySchema } from './idempotency-key.ts'
import { untrustedNote } from './untrusted-members.ts'
import { viewMeta } from './views.ts'

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
  /** View that hosts show beside its answer. */
  readonly _meta?: { readonly ui: { readonly resourceUri: string } }
}

type JsonObjectSchema = { type: 'object'; [keyword: string]: unknown }

/** Name of a tool in MCP, such as `wallets_transfer`. */
export function mcpName({ name }: Tool): string {
  return name.replaceAll('.', '_')
}

/** @param untrusted result members written by third parties. */
export function toListedTool(
  { tool, input, output }: CatalogueEntry,
  untrusted: readonly string[],
  inToolTerms: (text: string) => string,
): ListedTool {
  const { restOnly = [], requiredOverMcp = [] } = tool
  const { properties, required, ...rest } = compactSchema(without(input, restOnly), 'input')
  const key = idempotencyKeySchema(tool)
  const offered = asRecord(properties)
  const members = { ...offered, ...(key === null ? {} : { idempotency_key: key }) }
  const isSpend = tool.effect === 'spend'
  const needed = [...asNames(required), ...requiredOverMcp, ...(isSpend ? ['idempotency_key'] : [])]
  return {
    name: mcpName(tool),
    title: tool.title,
    description:
      inToolTerms([tool.summary, tool.description ?? []].flat().join(' ')) + untrustedNote(untrusted),
    inputSchema: {
      ...rewordDescriptions(rest, inToolTerms),
      type: 'object',
      properties: rewordDescriptions(members, inToolTerms),
      ...(needed.length > 0 ? { required: needed } : {}),
    },
    outputSchema: { ...rewordDescriptions(buildOutput(tool, output), inToolTerms), type: 'object' },
    annotations: {
      title: tool.title,
      readOnlyHint: tool.effect === 'read',
      destructiveHint: isSpend,
      idempotentHint: isIdempotent(tool),
      openWorldHint: isSpend,
    },
    ...viewMeta(mcpName(tool)),
  }
}

/** A schema without some members. @param members by path, such as `permit.v`. */
function without(schema: JsonSchema, members: readonly string[]): JsonSchema {
  const { properties, required, ...rest } = schema
  if (members.length === 0 || properties === undefined) return schema
  const kept = Object.entries(asRecord(properties)).filter(([name]) => !members.includes(name))
  const within = (name: string) =>
    members.flatMap((path) => (path.startsWith(`${name}.`) ? path.slice(name.length + 1) : []))
  const needed = asNames(required).filter((name) => !members.includes(name))
  return {
    ...rest,
    properties: Object.fromEntries(kept.map(([name, one]) => [name, without({ ...one }, within(name))])),
    ...(needed.length > 0 ? { required: needed } : {}),
  }
}

/** True if repeating a call has no further effect: spends have their key, and other writes follow their HTTP method. */
function isIdempotent({ effect, route }: Tool): boolean {
  return effect !== 'write' || !route.startsWith('POST ')
}

/** The answer of a tool that writes says whether it is the stored one of an earlier call. */
function buildOutput({ effect }: Tool, output: JsonSchema): object {
  if (effect === 'read') return shareShapes(compactSchema(output, 'output'))
  const replayed = { type: 'boolean', description: 'True for the stored answer of an earlier call.' }
  return shareShapes(
    compactSchema(
      {
        ...output,
        properties: { ...asRecord(output.properties), replayed },
        required: [...new Set([...asNames(output.required), 'replayed'])],
      },
      'output',
    ),
  )
}

function asRecord(value: unknown): Record<string, object> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function asNames(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : []
}

/** A schema whose descriptions name tools in place of routes. */
function rewordDescriptions(schema: object, inToolTerms: (text: string) => string): Record<string, object> {
  return JSON.parse(JSON.stringify(schema), (name, value) =>
    name === 'description' && typeof value === 'string' ? inToolTerms(value) : value,
  )
}
