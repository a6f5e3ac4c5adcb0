/** The tools with their JSON Schemas for OpenAPI and MCP, each converted once, when it is first asked for. */
import { z } from 'zod'
import { lazy } from '../core/base/lazy.ts'
import type { Settings } from './context.ts'
import type { Tool } from './tool.ts'

export type JsonSchema = Readonly<Record<string, unknown>>

export interface CatalogueEntry {
  readonly tool: Tool
  /** JSON Schema 2020-12 of the input, without references. */
  readonly input: JsonSchema
  /** JSON Schema 2020-12 of the output, without references. */
  readonly output: JsonSchema
  /** The same schemas, with each shape that has a name (`Card`) as a reference into `$defs`. */
  readonly named: { readonly input: JsonSchema; readonly output: JsonSchema }
}

/** Selects the tools that this deployment serves, and converts their schemas. */
export function buildCatalogue(
  tools: readonly Tool[],
  { mode, guests }: Pick<Settings, 'mode' | 'guests'>,
): readonly CatalogueEntry[] {
  const exists = { sandbox: mode === 'sandbox', guests }
  return tools
    .filter(({ only }) => only === undefined || exists[only])
    .map((tool) => {
      const named = lazy(() => ({ input: toSchema(tool.input), output: toSchema(tool.output) }))
      const input = lazy(() => inlineShapes(named().input))
      const output = lazy(() => inlineShapes(named().output))
      return {
        tool,
        get input() {
          return input()
        },
        get output() {
          return output()
        },
        get named() {
          return named()
        },
      }
    })
}

/** Replaces each reference into `$defs` by the shape itself; members beside the reference win. */
function inlineShapes({ $defs, ...schema }: JsonSchema): JsonSchema {
  const shapes = $defs as Readonly<Record<string, JsonSchema>> | undefined
  const inline = (at: unknown): unknown => {
    if (Array.isArray(at)) return at.map(inline)
    if (typeof at !== 'object' || at === null) return at
    const { $ref, ...rest } = at as JsonSchema
    const shape = typeof $ref === 'string' ? shapes?.[$ref.replace('#/$defs/', '')] : undefined
    return Object.fromEntries(
      Object.entries({ ...shape, ...rest }).map(([name, member]) => [name, inline(member)]),
    )
  }
  return inline(schema) as JsonSchema
}

function toSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...converted } = z.toJSONSchema(schema, {
    io: 'input',
    override: ({ zodSchema, jsonSchema }) => {
      // Zod treats preprocessed members as optional; a member is required if it rejects undefined.
      if (!(zodSchema instanceof z.ZodObject)) return
      const required = Object.entries(zodSchema.shape).filter(
        ([, member]) => !z.safeParse(member, undefined).success,
      )
      if (required.length > 0) jsonSchema.required = required.map(([name]) => name)
    },
  })
  return converted
}
