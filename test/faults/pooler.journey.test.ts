/** Two gateways on one database behind a pooler in transaction mode, which gives each transaction any of its connections. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { trialBalance } from '../../src/books/ledger/trial-balance.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { hasPooler, startPooler } from './pooler.ts'
import { createClient } from './transfers.ts'

describe.skipIf(!hasPooler || testServerUrl === undefined)(
  'gateways behind a pooler in transaction mode',
  () => {
    let database: Awaited<ReturnType<typeof createTestDatabase>>
    let pooler: Awaited<ReturnType<typeof startPooler>>
    let gateways: readonly Gateway[] = []

    beforeAll(async () => {
      database = await createTestDatabase(testServerUrl ?? '')
      pooler = await startPooler(database.url)
      const env = {
        DATABASE_URL: database.url,
        DATABASE_POOLER_URL: pooler.url,
        CHAIN: 'simulated',
        RATE_MUTATIONS: '100000/60',
      }
      gateways = [await startGateway(env), await startGateway(env)]
    }, 60_000)
    afterAll(async () => {
      await Promise.all(gateways.map((gateway) => gateway.stop()))
      await pooler?.close()
      await database?.drop()
    }, 60_000)

    it('serve transfers, each once, and no session keeps what another one set', async () => {
      const [one, two] = gateways
      if (one === undefined || two === undefined) throw new Error('two gateways were started')
      const client = await createClient(one.origin)
      const twin = await createClient(two.origin)
      const before = await client.usdc()
      const keys = Array.from({ length: 60 }, () => randomUUID())
      // Each key goes to both gateways at once.
      const answers = await Promise.all(
        keys.flatMap((key) => [client.transferUntilFinal('0.01', key), twin.transferUntilFinal('0.01', key)]),
      )
      expect(answers.map(({ status, body }) => [status, body.code])).toEqual(
        answers.map(() => [200, undefined]),
      )
      expect(new Set(answers.map(({ body }) => body.transferId)).size).toBe(60)
      const after = await client.usdc()
      expect(Number(before.amount) - Number(after.amount)).toBeCloseTo(0.6, 6)
      expect(one.output() + two.output()).not.toMatch(/prepared statement|startup parameter/)
    })

    it('keep the books level, and limit a transaction that waits', async () => {
      const pooled = await openPostgres({ url: database.url, poolerUrl: pooler.url })
      try {
        expect(await trialBalance(pooled)).toMatchObject({ balanced: true, drifts: [] })
        const limit = await pooled.transaction((connection) =>
          connection.call<{ limit: string }>(
            { name: 'limit', text: "select current_setting('statement_timeout') as limit" },
            [],
          ),
        )
        expect(limit).toEqual([{ limit: '5s' }])
        const [outside] = await pooled.call<{ limit: string }>(
          { name: 'limit', text: "select current_setting('statement_timeout') as limit" },
          [],
        )
        expect(outside?.limit).toBe('0')
      } finally {
        await pooled.close()
      }
    })
  },
)
