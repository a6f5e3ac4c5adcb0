import { expect, it } from 'vitest'
import { onBothEngines } from '../engines.ts'
import { dumpSchema } from './dump-schema.ts'

onBothEngines('the schema', (database) => {
  it('matches the snapshot', async () => {
    await expect(await dumpSchema(database())).toMatchFileSnapshot('schema.snapshot.txt')
  })
})
