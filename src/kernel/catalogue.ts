/** The tools with their JSON Schemas, converted once at start: what OpenAPI and MCP are both made of. */
import { z } from 'zod'
import type { Settings } from './context.ts'
import type { Tool } from './tool.ts'

/** A JSON Schema document. */
export type JsonSchema = Readonly<Record<string, unknown>>

/** One tool and what the outside reads of it. */
export interface CatalogueEntry {
  readonly tool: Tool
  /** JSON Schema 2020-12 of what it takes. */
  readonly input: JsonSchema
  /** JSON Schema 2020-12 of what it answers. */
  readonly output: JsonSchema
}

/** Converts the schemas of the tools that this deployment serves. */
export function catalogueOf(
  tools: readonly Tool[],
  { mode, guests }: Pick<Settings, 'mode' | 'guests'>,
): readonly CatalogueEntry[] {
  const exists = { sandbox: mode === 'sandbox', guests }
  return tools
    .filter(({ only }) => only === undefined || exists[only])
    .map((tool) => ({ tool, input: schemaOf(tool.input), output: schemaOf(tool.output) }))
}

function schemaOf(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...converted } = z.toJSONSchema(schema, {
    io: 'input',
    override: ({ zodSchema, jsonSchema }) => {
      // Zod counts a preprocessed member as optional; required is what does not take undefined.
      if (!(zodSchema instanceof z.ZodObject)) return
      const required = Object.entries(zodSchema.shape).filter(
        ([, member]) => !z.safeParse(member, undefined).success,
      )
      if (required.length > 0) jsonSchema.required = required.map(([name]) => name)
    },
  })
  return converted
}
