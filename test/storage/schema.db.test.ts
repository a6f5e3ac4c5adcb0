import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { schemaText } from '../../src/storage/build-schema.ts'
import { onBothEngines } from '../engines.ts'
import { dumpSchema } from './dump-schema.ts'

const generated = readFileSync(new URL('../../src/storage/schema.ts', import.meta.url), 'utf8')

onBothEngines('the schema', (database) => {
  it('matches the snapshot', async () => {
    await expect(await dumpSchema(database())).toMatchFileSnapshot('schema.snapshot.txt')
  })

  it('has the types in schema.ts', async () => {
    expect(await schemaText(database()), 'schema.ts is out of date: npm run schema').toBe(generated)
  })
})
