import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { operationsText } from './operations-text.ts'

it('src/client/operations.ts is what the catalogue says', () => {
  const written = readFileSync('src/client/operations.ts', 'utf8')
  expect(operationsText(), 'src/client/operations.ts is out of date: npm run client').toBe(written)
})
