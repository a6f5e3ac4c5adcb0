import { expect, it } from 'vitest'
import { onBothEngines } from '../engines.ts'
import { dumpSchema } from './dump-schema.ts'

onBothEngines('the schema', (database) => {
  it('is the one that the snapshot shows', async () => {
    await expect(await dumpSchema(database())).toMatchFileSnapshot('schema.snapshot.txt')
  })
})
