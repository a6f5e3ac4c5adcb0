/**
 * PostgreSQL that is restarted, disconnected, hung or lost: requests get 503 in bounded time, nothing is half done, a
 * repeated key gets the true outcome, and the gateway recovers by itself.
 */
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { trialBalance } from '../../src/books/ledger/trial-balance.ts'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { expectUnavailable, MAX_ANSWER_MS, sendJson } from './ask.ts'
import { startTcpProxy, type TcpProxy, through } from './tcp-proxy.ts'
import { type Client, createClient } from './transfers.ts'

describe.skipIf(testServerUrl === undefined)('a gateway whose PostgreSQL', () => {
  let proxy: TcpProxy
  let url: string
  let drop = async () => {}
  let gateway: Gateway
  let client: Client
  /** Connects to the server directly, bypassing the fault. */
  let direct: Database
  let sent = 0

  beforeAll(async () => {
    const created = await createTestDatabase(testServerUrl ?? '')
    ;({ url, drop } = created)
    const server = new URL(url)
    proxy = await startTcpProxy(Number(server.port || 5432), server.hostname)
    gateway = await startGateway({
      DATABASE_URL: through(proxy, url),
      CHAIN: 'simulated',
      RATE_MUTATIONS: '100000/60',
      LOG_LEVEL: 'silent',
    })
    client = await createClient(gateway.origin)
    direct = await openPostgres({ url })
  }, 60_000)
  afterAll(async () => {
    proxy?.pass()
    await gateway?.stop()
    await proxy?.close()
    await direct?.close()
    await drop()
  }, 60_000)

  /** Expects that the gateway works again, and that the books have every confirmed transfer once. */
  const expectConsistent = async () => {
    await expect
      .poll(async () => (await sendJson(`${gateway.origin}/readyz`)).status, { timeout: 15_000 })
      .toBe(200)
    await expect
      .poll(() => client.usdc(), { timeout: 20_000 })
      .toEqual({ amount: String(1000 - sent), held: '0' })
    expect(await trialBalance(direct)).toMatchObject({ balanced: true, drifts: [] })
  }
  afterEach(async () => {
    proxy.pass()
    await expectConsistent()
  }, 40_000)
  const confirm = async (idempotencyKey: string) => {
    expect((await client.transferUntilFinal('1', idempotencyKey)).body).toMatchObject({ status: 'confirmed' })
    sent += 1
  }

  it('closes all connections at once, as a restart does, continues with new ones', async () => {
    const running = Array.from({ length: 8 }, (_, index) => client.transfer('1', `restart-${index}`))
    const killer = new pg.Client({ connectionString: url })
    await killer.connect()
    await killer.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    )
    await killer.end()
    for (const answer of await Promise.all(running))
      if (answer.status !== 200) expectUnavailable(answer, 'provider_unavailable', 'settlement_pending')
    for (let index = 0; index < 8; index += 1) await confirm(`restart-${index}`)
  })

  it('refuses connections for a while, answers 503 meanwhile and executes repeats once', async () => {
    proxy.refuse()
    for (const answer of [
      await client.get('/api/wallets'),
      await client.transfer('1', 'refused'),
      await client.post('/api/cards', { nickname: 'Refused' }, 'refused-card'),
    ]) {
      expectUnavailable(answer, 'provider_unavailable')
      expect(answer.ms).toBeLessThan(5_000)
    }
    expect((await sendJson(`${gateway.origin}/healthz`)).status).toBe(200)
    expect((await sendJson(`${gateway.origin}/readyz`)).status).toBe(503)
    proxy.pass()
    await confirm('refused')
  })

  it('hangs, answers 503 in time to all requests, and recovers when it resumes', async () => {
    proxy.hold()
    const all = await Promise.all([
      ...Array.from({ length: 6 }, (_, index) => client.transfer('1', `hung-${index}`)),
      ...Array.from({ length: 10 }, () => client.get('/api/wallets')),
      client.post('/api/cards', { nickname: 'Hung' }, 'hung-card'),
    ])
    for (const answer of all) {
      expectUnavailable(answer)
      expect(answer.ms).toBeLessThan(MAX_ANSWER_MS)
    }
    expect((await sendJson(`${gateway.origin}/readyz`)).status).toBe(503)
    proxy.pass()
    for (let index = 0; index < 6; index += 1) await confirm(`hung-${index}`)
  })

  it('is unreachable on its open connections, replaces them', async () => {
    await Promise.all(Array.from({ length: 12 }, () => client.get('/api/wallets')))
    proxy.forget()
    const all = await Promise.all(
      Array.from({ length: 12 }, (_, index) => client.transfer('1', `lost-${index}`)),
    )
    for (const answer of all) expect(answer.ms).toBeLessThan(MAX_ANSWER_MS)
    for (let index = 0; index < 12; index += 1) await confirm(`lost-${index}`)
  })

  it('accepts a reservation and loses the answer, reports its outcome', async () => {
    const lost = proxy.loseAnswerTo('operation_reserve')
    const answer = await client.transfer('1', 'unanswered')
    await lost
    // The transfer's row was written with its money, and this call does not know it: it says so, and asks to be repeated.
    expectUnavailable(answer, 'provider_unavailable')
    const known = await client.transferUntilFinal('1', 'unanswered')
    expect(known.status).toBe(200)
    sent += 1
    const again = await client.transfer('1', 'unanswered')
    expect([again.status, again.body.transferId]).toEqual([200, known.body.transferId])
  })

  it('commits a write and loses the answer, replays the stored answer', async () => {
    const before = (await client.get('/api/cards')).body
    const lost = proxy.loseAnswerTo('commit')
    const first = await client.post('/api/cards', { nickname: 'Unanswered' }, 'card-unanswered')
    await lost
    expectUnavailable(first)
    let again = await client.post('/api/cards', { nickname: 'Unanswered' }, 'card-unanswered')
    await expect
      .poll(async () => {
        again = await client.post('/api/cards', { nickname: 'Unanswered' }, 'card-unanswered')
        return again.status
      })
      .toBe(200)
    const cards = (body: Record<string, unknown>) => (Array.isArray(body.cards) ? body.cards.length : -1)
    expect(cards((await client.get('/api/cards')).body)).toBe(cards(before) + 1)
  })

  it('blocks all requests on a lock, answers 503 in time and continues once it is free', async () => {
    await direct.transaction(async ({ call }) => {
      await call({ name: 'fault_lock', text: 'lock table reservation in access exclusive mode' }, [])
      const all = await Promise.all([
        ...Array.from({ length: 4 }, (_, index) => client.transfer('1', `locked-${index}`)),
        client.get('/api/cards'),
      ])
      for (const answer of all.slice(0, 4)) expectUnavailable(answer)
    })
    for (let index = 0; index < 4; index += 1) await confirm(`locked-${index}`)
  })

  it('loses a transaction’s connection, frees its locks', async () => {
    const own = await startTcpProxy(Number(new URL(url).port || 5432), new URL(url).hostname)
    const database = await openPostgres({ url: through(own, url) })
    const lock = { name: 'fault_try', text: 'select pg_try_advisory_xact_lock(7) as free' }
    try {
      await expect(
        database.transaction(async ({ call }) => {
          expect(await call(lock, [])).toEqual([{ free: true }])
          own.forget()
          return call(lock, [])
        }),
      ).rejects.toMatchObject({ code: 'provider_unavailable' })
      await expect.poll(() => direct.call(lock, []), { timeout: 5_000 }).toEqual([{ free: true }])
    } finally {
      await own.close()
      await database.close()
    }
  })
})
