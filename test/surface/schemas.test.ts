/** Every schema that clients get is valid JSON Schema 2020-12. */
import { expect, it } from 'vitest'
import { toListedTool } from '../../mcp/listed-tool.ts'
import { buildCatalogue } from '../../src/kernel/catalogue.ts'
import { tools } from '../../tools/index.ts'
import { schemaErrors } from '../json-schema.ts'

const catalogue = buildCatalogue(tools, { mode: 'sandbox', guests: true })

it('finds faults that a client could reject', () => {
  expect(schemaErrors({ type: 'object', required: ['a', 'a'] })).toHaveLength(1)
  expect(schemaErrors({ type: 'strings' })).not.toEqual([])
  expect(schemaErrors({ properties: { a: { minimum: '1' } } })).toHaveLength(1)
})

it.each(catalogue.map((entry) => [entry.tool.name, entry] as const))('%s has valid schemas', (_, entry) => {
  const { input, output, named } = entry
  const { inputSchema, outputSchema } = toListedTool(entry, [], (text) => text)
  for (const schema of [input, output, named.input, named.output, inputSchema, outputSchema])
    expect(schemaErrors(schema)).toEqual([])
})
