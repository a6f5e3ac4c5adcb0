import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { TABLE_FILE, withTable } from './tools-table.ts'

it('docs/agents.md lists the tools that there are', () => {
  const written = readFileSync(TABLE_FILE, 'utf8')
  expect(written).toContain('`events_list`')
  expect(withTable(), 'the table of tools is out of date: npm run client').toBe(written)
})
