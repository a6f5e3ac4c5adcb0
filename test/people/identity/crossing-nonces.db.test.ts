/** Nonces that several processes use up at the same time, in different orders. */
import { describe, expect, it } from 'vitest'
import { authenticateKey } from '../../../src/people/identity/store.ts'
import { openPostgres } from '../../../src/storage/postgres.ts'
import { noon, openAccount, openKey } from '../../books/spending/scene.ts'
import { createTestDatabase, testServerUrl } from '../../engines.ts'

describe.skipIf(testServerUrl === undefined)('nonces of one key at several processes', () => {
  it('are each new once, and never deadlock, whatever their order', async () => {
    const { url, drop } = await createTestDatabase(testServerUrl ?? '')
    const processes = await Promise.all([openPostgres({ url }), openPostgres({ url })])
    try {
      const [database] = processes
      await database.migrate()
      const keyId = await openKey(database, await openAccount(database, 0n))
      const thumbprint = 'a'.repeat(43)
      await database.kysely.updateTable('access_key').set({ thumbprint }).where('id', '=', keyId).execute()
      for (let round = 0; round < 20; round += 1) {
        const nonces = Array.from({ length: 60 }, (_, index) => `nonce ${round} ${index}`)
        const used = await Promise.all(
          processes.flatMap((process, index) =>
            (index === 0 ? nonces : nonces.toReversed()).map((nonce) =>
              authenticateKey(process, { thumbprint, nonce, nonceExpiresAt: noon }, noon),
            ),
          ),
        )
        expect(used.filter((found) => found?.isNonceNew === true)).toHaveLength(nonces.length)
      }
      const [found] = await database.call<{ deadlocks: bigint }>(
        {
          name: 'deadlocks',
          text: 'select deadlocks from pg_stat_database where datname = current_database()',
        },
        [],
      )
      expect(found?.deadlocks).toBe(0n)
    } finally {
      await Promise.all(processes.map((process) => process.close()))
      await drop()
    }
  })
})
