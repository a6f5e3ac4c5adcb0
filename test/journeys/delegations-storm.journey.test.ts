/**
 * 64 keys up to four generations below one, over all rails and several gateways that are killed in turn: the budget of the root is
 * used to the last unit and never more. STORM_RUNS sets how often (1), STORM_SECONDS how long gateways are killed (15).
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { trialBalance } from '../../src/books/ledger/trial-balance.ts'
import { systemClock } from '../../src/core/base/clock.ts'
import { silentLog } from '../../src/core/base/log.ts'
import type { Database } from '../../src/storage/database.ts'
import { openPglite } from '../../src/storage/pglite.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person, requestJson } from './people.ts'

const redisUrl = process.env.TEST_REDIS_URL
const RUNS = Number(process.env.STORM_RUNS ?? 1)
const SECONDS = Number(process.env.STORM_SECONDS ?? 15)
const KILL_MS = 5_000
const GATEWAYS = 4
const CHILDREN = [4, 12, 16, 32] as const
const CLIENTS = 24
const BUDGET = 4_000_000n

const credentials = z.object({ chain: z.object({ rpcUrl: z.string() }) })
const scopes = ['wallets:transfer', 'purchases:pay', 'cards:pay', 'agents:delegate']
const buildPolicy = (max: string) => ({
  perTransaction: { max: '1' },
  dailyBudget: { max },
  totalBudget: { max },
  categories: { allow: ['transfer', 'card', 'x402'] },
})

interface Child {
  readonly key: string
  readonly cardId: string
}

/** Gateways that are killed, and their books. */
interface Arena {
  readonly gateways: readonly Gateway[]
  /** Ends one gateway by SIGKILL and starts it again. @param turn counts the kills. */
  kill(turn: number): Promise<void>
  /** Lets a test look at the books, which stand still on the embedded engine meanwhile. */
  inspect<Found>(look: (database: Database) => Promise<Found>): Promise<Found>
  close(): Promise<void>
}

const limits = { RATE_MUTATIONS: '100000/60', RATE_GUESTS: '1000/60' }

async function killGateway({ process }: Gateway): Promise<void> {
  process.kill('SIGKILL')
  if (process.signalCode === null) await once(process, 'exit')
}

async function openServers(): Promise<Arena> {
  const { url, drop } = await createTestDatabase(testServerUrl ?? '')
  const env: Record<string, string> = {
    ...limits,
    DATABASE_URL: url,
    ...(redisUrl === undefined ? {} : { REDIS_URL: redisUrl }),
  }
  const first = await startGateway(env)
  const { chain } = credentials.parse(await (await fetch(`${first.origin}/sandbox/credentials`)).json())
  env.CHAIN_RPC_URL = chain.rpcUrl
  const others = await Promise.all(Array.from({ length: GATEWAYS - 1 }, () => startGateway(env)))
  const gateways = [first, ...others]
  const database = await openPostgres({ url })
  return {
    gateways,
    kill: async (turn) => {
      // The first one serves the chain and the sellers.
      const place = 1 + (turn % (GATEWAYS - 1))
      const victim = gateways[place]
      if (victim !== undefined) await killGateway(victim)
      gateways[place] = await startGateway(env)
    },
    inspect: (look) => look(database),
    close: async () => {
      for (const gateway of gateways.toReversed())
        if (gateway.process.exitCode === null && gateway.process.signalCode === null) await gateway.stop()
      await database.close()
      await drop()
    },
  }
}

/** One gateway on a directory: its chain and its sellers end with it. */
async function openEmbedded(): Promise<Arena> {
  const directory = mkdtempSync(join(tmpdir(), 'bursar-storm-'))
  const env = { ...limits, DATA_DIR: directory }
  const gateways = [await startGateway(env)]
  const stop = async () => {
    for (const gateway of gateways.splice(0)) await gateway.stop()
  }
  return {
    gateways,
    kill: async () => {
      for (const gateway of gateways.splice(0)) await killGateway(gateway)
      gateways.push(await startGateway(env))
    },
    inspect: async (look) => {
      await stop()
      const database = await openPglite({ directory, now: systemClock, log: silentLog })
      try {
        return await look(database)
      } finally {
        await database.close()
        gateways.push(await startGateway(env))
      }
    },
    close: async () => {
      await stop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

describe.each([
  { on: 'four gateways on PostgreSQL', open: openServers, isAbsent: testServerUrl === undefined },
  { on: 'one gateway on the embedded engine', open: openEmbedded, isAbsent: false },
])('a tree of keys over all rails, on $on', ({ open, isAbsent }) => {
  let arena: Arena
  const chooseOrigin = () => {
    const { gateways } = arena
    return gateways[Math.floor(Math.random() * gateways.length)]?.origin ?? 'http://127.0.0.1:1'
  }

  beforeAll(async () => {
    if (!isAbsent) arena = await open()
  }, 120_000)
  afterAll(() => arena?.close(), 60_000)

  const call = (key: string, path: string, body: object, idempotencyKey = crypto.randomUUID()) =>
    requestJson(chooseOrigin(), 'POST', path, {
      body,
      headers: { authorization: `Bearer ${key}`, 'idempotency-key': idempotencyKey },
    })
  /** A call whose connection broke is made again, with its idempotency key. */
  const insist = async (key: string, path: string, body: object) => {
    const name = crypto.randomUUID()
    for (let tries = 0; tries < 60; tries += 1) {
      const answer = await call(key, path, body, name).catch(() => undefined)
      if (answer !== undefined && answer.status !== 503 && answer.body.code !== 'idempotency_in_progress')
        return answer
      await pause(100)
    }
    throw new Error('a call never ended')
  }

  const plant = async (person: Person): Promise<{ rootId: string; children: Child[] }> => {
    const { body: root } = await person.send('POST', '/api/developer/keys', {
      name: 'Root',
      scopes,
      policy: buildPolicy('4'),
    })
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
    const children: Child[] = []
    let above = [String(root.key)]
    for (const count of CHILDREN) {
      const parents = above
      above = []
      for (let index = 0; index < count; index += 1) {
        const given = { name: 'Child', scopes, policy: buildPolicy('4'), expiresAt, bearer: true }
        const { status, body } = await insist(
          parents[index % parents.length] ?? '',
          '/api/agents/delegations',
          given,
        )
        expect([status, body]).toEqual([200, expect.anything()])
        const { body: card } = await person.send('POST', '/api/cards', { agentId: body.agentId })
        above.push(String(body.key))
        children.push({ key: String(body.key), cardId: String(card.id) })
      }
    }
    return { rootId: String(root.id), children }
  }

  it.skipIf(isAbsent).each(Array.from({ length: RUNS }, (_, run) => run))(
    'spends exactly what its root may, run %i',
    async () => {
      const person = await newGuest(chooseOrigin())
      const { rootId, children } = await plant(person)
      const destination = `0x${'5'.repeat(40)}`
      const random = (most: number) => 1 + Math.floor(Math.random() * most)
      const spends: readonly ((child: Child) => Promise<unknown>)[] = [
        ({ key }) => insist(key, '/api/wallets/transfer', { destination, amount: `0.00${random(9)}` }),
        ({ key }) =>
          insist(key, '/api/wallets/transfer', { destination, amount: `0.0${random(9)}`, token: 'EURC' }),
        ({ key }) =>
          insist(key, '/api/purchases', {
            url: `${arena.gateways[0]?.origin}/sandbox/sellers/weather`,
            maxAmount: '0.10',
          }),
        ({ cardId }) =>
          requestJson(chooseOrigin(), 'POST', '/sandbox/authorizations', {
            body: { cardId, amount: `0.0${random(9)}`, merchant: 'Example Books' },
            headers: { authorization: `Bearer ${person.token}` },
          }),
        ({ key }) => insist(key, '/api/cards', { singleUse: { amount: `0.0${random(9)}` } }),
      ]
      const until = Date.now() + SECONDS * 1_000
      let kills = 0
      const killing = async () => {
        for (;;) {
          await pause(KILL_MS)
          if (Date.now() > until) return
          await arena.kill(kills)
          kills += 1
        }
      }
      const client = async () => {
        while (Date.now() < until) {
          const child = children[random(children.length) - 1]
          const spend = spends[random(spends.length) - 1]
          if (child !== undefined && spend !== undefined) await spend(child).catch(() => undefined)
        }
      }
      await Promise.all([killing(), ...Array.from({ length: CLIENTS }, client)])
      expect(kills).toBeGreaterThan(0)

      const rails = await arena.inspect(async ({ kysely }) => {
        const { rows } = await sql<{ rail: string }>`
          select distinct d.operation || ' ' || (d.facts->>'asset') as rail from decision d
          where d.account_id = ${person.accountId} and d.verdict = 'allow'`.execute(kysely)
        return rows.map(({ rail }) => rail)
      })
      expect(rails).toEqual(
        expect.arrayContaining([
          'cards.authorize USDC',
          'cards.issue USDC',
          'purchases.buy USDC',
          'wallets.transfer EURC',
          'wallets.transfer USDC',
        ]),
      )

      // The rest, to the last unit: what is left is asked for by many at once.
      for (const share of ['0.5', '0.05', '0.005', '0.0005', '0.00005', '0.000005', '0.000001'])
        for (let refused = 0; refused < 2; ) {
          const answers = await Promise.all(
            children
              .slice(0, 12)
              .map(({ key }) => insist(key, '/api/wallets/transfer', { destination, amount: share })),
          )
          refused = answers.every(({ status }) => status === 403) ? refused + 1 : 0
        }
      await expect
        .poll(
          async () =>
            arena.inspect(async ({ kysely }) => {
              const open = await kysely
                .selectFrom('transfer')
                .select('id')
                .where('account_id', '=', person.accountId)
                .where('state', 'not in', ['confirmed', 'failed'])
                .execute()
              return open.length
            }),
          { timeout: 60_000 },
        )
        .toBe(0)
      await arena.inspect(async (database) => {
        const { rows } = await sql<{ id: string; used: bigint }>`
          select u.key_id as id, sum(u.used_micros)::bigint as used from budget_usage u
          join access_key k on k.id = u.key_id where k.account_id = ${person.accountId} group by u.key_id`.execute(
          database.kysely,
        )
        expect(rows.find(({ id }) => id === rootId)?.used).toBe(BUDGET)
        expect(rows.filter(({ used }) => used > BUDGET)).toEqual([])
        expect(await trialBalance(database)).toMatchObject({ balanced: true, drifts: [] })
      })
    },
    300_000,
  )
})
