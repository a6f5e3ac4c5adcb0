/**
 * The primary dies under load and the standby is promoted: the gateway continues on the standby, every answered
 * transfer is there, none is done twice, and the former primary is never written to again.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { trialBalance } from '../../src/books/ledger/trial-balance.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { canReplicate, type ReplicatedPostgres, startReplicatedPostgres } from './replicated-postgres.ts'
import { type Client, createClient } from './transfers.ts'

const CALLERS = 6

describe.skipIf(!canReplicate)('a gateway whose PostgreSQL fails over', () => {
  let servers: ReplicatedPostgres
  let gateway: Gateway
  let client: Client
  let sent = 0
  /** Transfer ids by idempotency key, as answered. */
  const answered = new Map<string, string>()
  const asked = new Set<string>()

  beforeAll(async () => {
    servers = await startReplicatedPostgres()
    gateway = await startGateway({
      DATABASE_URL: servers.url,
      CHAIN: 'simulated',
      RATE_MUTATIONS: '100000/60',
      RATE_SPONSORED: '100000/60',
      AML_VELOCITY: '50000/86400',
      LOG_LEVEL: 'silent',
    })
    client = await createClient(gateway.origin)
  }, 60_000)
  afterAll(async () => {
    await gateway?.stop()
    await servers?.close()
  }, 60_000)

  /** Sends transfers until it is stopped. @returns the time of the last answer of each kind. */
  const load = () => {
    let isOver = false
    let lastSuccess = performance.now()
    let standstill = 0
    const callers = Array.from({ length: CALLERS }, async () => {
      while (!isOver) {
        sent += 1
        const key = `failover-${sent}`
        asked.add(key)
        const { status, body } = await client.transfer('0.01', key)
        if (status === 200) {
          answered.set(key, String(body.transferId))
          const now = performance.now()
          standstill = Math.max(standstill, now - lastSuccess)
          lastSuccess = now
        } else {
          expect([status, body.code]).toEqual([503, expect.any(String)])
          await pause(50)
        }
      }
    })
    return {
      standstill: () => standstill,
      stop: async () => {
        isOver = true
        await Promise.all(callers)
      },
    }
  }

  it('continues on the promoted standby within 5 seconds, without a lost or repeated transfer', async () => {
    const running = load()
    await pause(1_500)
    const before = answered.size
    expect(before).toBeGreaterThan(10)
    const killedAt = performance.now()
    await servers.killPrimary()
    await servers.promoteStandby()
    const promotionMs = performance.now() - killedAt
    await expect.poll(() => answered.size, { timeout: 15_000 }).toBeGreaterThan(before + 20)
    await running.stop()
    // A busy disk may delay the promotion, which is not the gateway's part.
    expect(running.standstill() - promotionMs).toBeLessThan(5_000)
    process.stderr.write(
      `failover: no transfer for ${running.standstill().toFixed(0)} ms, of which promotion ${promotionMs.toFixed(0)}\n`,
    )

    let confirmed = 0
    for (const key of asked) {
      const { status, body } = await client.transferUntilFinal('0.01', key)
      const id = answered.get(key)
      // A call that was cut between its reserve and its transfer is released, and its key says so for good.
      if (status !== 200)
        expect([id, body.code, body.detail]).toEqual([undefined, 'provider_unavailable', expect.any(String)])
      else confirmed += 1
      if (id !== undefined) expect([status, body.transferId]).toEqual([200, id])
    }
    expect(confirmed).toBeGreaterThan(asked.size - CALLERS)
    const left = (1000 - confirmed / 100).toFixed(2).replace(/\.?0+$/, '')
    await expect.poll(() => client.usdc(), { timeout: 10_000 }).toEqual({ amount: left, held: '0' })
    const direct = await openPostgres({ url: servers.standbyUrl })
    const rows = await direct.kysely
      .selectFrom('transfer')
      .select('id')
      .where('state', '=', 'confirmed')
      .execute()
    expect(rows).toHaveLength(confirmed)
    expect(await trialBalance(direct)).toMatchObject({ balanced: true, drifts: [] })
    await direct.close()
  }, 120_000)

  it('stays on the higher timeline when the former primary comes back', async () => {
    await servers.restartPrimary()
    const direct = await openPostgres({ url: servers.standbyUrl, poolSize: 1 })
    await direct.call(
      {
        name: 'end_others',
        text: "select pg_terminate_backend(pid)::text as ended from pg_stat_activity where datname = 'bursar' and pid <> pg_backend_pid()",
      },
      [],
    )
    const { status, body } = await client.transferUntilFinal('0.01', 'after-the-return')
    expect(status).toBe(200)
    const rows = await direct.kysely
      .selectFrom('transfer')
      .select('id')
      .where('id', '=', String(body.transferId))
      .execute()
    expect(rows).toHaveLength(1)
    await direct.close()
    const former = await openPostgres({ url: servers.primaryUrl, poolSize: 1 })
    const there = await former.kysely
      .selectFrom('transfer')
      .select('id')
      .where('id', '=', String(body.transferId))
      .execute()
    expect(there).toEqual([])
    await former.close()
  }, 60_000)
})
