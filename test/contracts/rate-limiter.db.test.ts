import { randomBytes } from 'node:crypto'
import { connect, createServer } from 'node:net'
import { Redis } from 'ioredis'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { silentLog } from '../../src/core/base/log.ts'
import { createDatabaseRateLimiter } from '../../src/providers/rate-limiter/database.ts'
import { createMemoryRateLimiter } from '../../src/providers/rate-limiter/memory.ts'
import type { RateLimiter, RateVerdict } from '../../src/providers/rate-limiter/port.ts'
import { createRedisRateLimiter } from '../../src/providers/rate-limiter/redis.ts'
import type { Database } from '../../src/storage/database.ts'
import { openPglite } from '../../src/storage/pglite.ts'
import { openPostgres } from '../../src/storage/postgres.ts'

/** Limiters on one store, as in two processes, and a function to close them. */
interface Opened {
  readonly limiters: readonly [RateLimiter, RateLimiter]
  close(): Promise<void>
}

const { TEST_REDIS_URL: redisUrl, TEST_DATABASE_URL: databaseUrl } = process.env
const start = new Date('2026-11-20T12:00:00.000Z')
const later = (ms: number) => new Date(start.getTime() + ms)

async function openMemory(): Promise<Opened> {
  const limiter = createMemoryRateLimiter()
  return { limiters: [limiter, limiter], close: async () => {} }
}

async function openDatabases(
  databases: readonly [Database, Database],
  drop: () => Promise<void>,
): Promise<Opened> {
  await databases[0].migrate()
  const [one, other] = databases
  return {
    limiters: [createDatabaseRateLimiter({ database: one }), createDatabaseRateLimiter({ database: other })],
    close: async () => {
      await one.close()
      if (other !== one) await other.close()
      await drop()
    },
  }
}

async function openEmbedded(): Promise<Opened> {
  const database = await openPglite({ directory: 'memory', now: () => start, log: silentLog })
  return openDatabases([database, database], async () => {})
}

async function openServer(url: string): Promise<Opened> {
  const admin = new pg.Client({ connectionString: url })
  await admin.connect()
  const name = `rate_${randomBytes(6).toString('hex')}`
  await admin.query(`create database ${name}`)
  const own = new URL(url)
  own.pathname = `/${name}`
  const [one, other] = [await openPostgres({ url: own.href }), await openPostgres({ url: own.href })]
  return openDatabases([one, other], async () => {
    await admin.query(`drop database ${name} with (force)`)
    await admin.end()
  })
}

async function openRedis(url: string): Promise<Opened> {
  const [one, other] = [createRedisRateLimiter(url), createRedisRateLimiter(url)]
  return {
    limiters: [one, other],
    close: async () => {
      await one.close()
      await other.close()
    },
  }
}

const stores: readonly (readonly [string, () => Promise<Opened>])[] = [
  ['memory', openMemory],
  ['database on PGlite', openEmbedded],
  ...(databaseUrl === undefined ? [] : [['database on PostgreSQL', () => openServer(databaseUrl)] as const]),
  ...(redisUrl === undefined ? [] : [['redis', () => openRedis(redisUrl)] as const]),
]

const freshKey = () => `test:${randomBytes(9).toString('hex')}`

describe.each(stores)('rate limiter: %s', (_name, open) => {
  let opened: Opened
  beforeAll(async () => {
    opened = await open()
  })
  afterAll(() => opened.close())

  const take = (key: string, ms: number, count = 2, seconds = 60): Promise<RateVerdict> =>
    opened.limiters[0].take(key, { count, seconds }, later(ms))

  it('opens a window with the first request and counts down', async () => {
    const key = freshKey()
    expect(await take(key, 0)).toEqual({ allowed: true, remaining: 1, resetSeconds: 60 })
    expect(await take(key, 59_001)).toEqual({ allowed: true, remaining: 0, resetSeconds: 1 })
    expect(await take(key, 60_000)).toEqual({ allowed: true, remaining: 1, resetSeconds: 60 })
  })

  it('reports the remaining time at the first refusal, and restarts the window at each later one', async () => {
    const key = freshKey()
    await take(key, 0)
    await take(key, 1)
    const refused = { allowed: false, remaining: 0, resetSeconds: 60 }
    expect(await take(key, 20_000)).toEqual({ ...refused, resetSeconds: 40 })
    expect(await take(key, 30_000)).toEqual(refused)
    expect(await take(key, 89_999)).toEqual(refused)
    expect(await take(key, 149_998)).toEqual(refused)
  })

  it('gives back a count of an open window, and of no other', async () => {
    const key = freshKey()
    const giveBack = (ms: number) => opened.limiters[1].giveBack(key, { count: 2, seconds: 60 }, later(ms))
    await giveBack(0)
    for (const ms of [0, 1_000, 2_000, 3_000]) {
      expect(await take(key, ms)).toMatchObject({ allowed: true, remaining: 1 })
      await giveBack(ms)
    }
    await take(key, 4_000)
    await take(key, 5_000)
    expect(await take(key, 6_000)).toMatchObject({ allowed: false })
    await giveBack(60_000)
    expect(await take(key, 60_000)).toMatchObject({ allowed: true, remaining: 1 })
    expect(await take(key, 61_000)).toMatchObject({ allowed: true, remaining: 0 })
  })

  it('gives nothing back to a window that opened after the request', async () => {
    const key = freshKey()
    await take(key, 60_500)
    await opened.limiters[1].giveBack(key, { count: 2, seconds: 60 }, later(59_900))
    expect(await take(key, 60_600)).toMatchObject({ allowed: true, remaining: 0 })
  })

  it('never extends the window for refused requests when restarts are off', async () => {
    const key = freshKey()
    const takeWithoutRestart = (ms: number) =>
      opened.limiters[0].take(key, { count: 1, seconds: 60, restarts: false }, later(ms))
    await takeWithoutRestart(0)
    for (const ms of [1_000, 2_000, 30_000, 59_000])
      expect(await takeWithoutRestart(ms)).toEqual({
        allowed: false,
        remaining: 0,
        resetSeconds: 60 - ms / 1000,
      })
    expect(await takeWithoutRestart(60_000)).toMatchObject({ allowed: true })
  })

  it.each([0, 1, 499, 999])(
    'admits a client that waited exactly the announced time, %s ms into a second',
    async (ms) => {
      const key = freshKey()
      await take(key, 0)
      await take(key, 1500)
      const { resetSeconds } = await take(key, 30_000 + ms)
      expect(await take(key, 30_000 + ms + resetSeconds * 1000)).toMatchObject({
        allowed: true,
        remaining: 1,
      })
    },
  )

  it('refuses a client a millisecond earlier', async () => {
    const key = freshKey()
    await take(key, 0, 1)
    await take(key, 1, 1)
    expect(await take(key, 59_999, 1)).toMatchObject({ allowed: false })
    expect(await take(key, 119_998, 1)).toMatchObject({ allowed: false })
    expect(await take(key, 179_998, 1)).toMatchObject({ allowed: true })
  })

  it('separates clients and classes', async () => {
    const [one, other] = [freshKey(), freshKey()]
    await take(one, 0, 1)
    expect(await take(one, 0, 1)).toMatchObject({ allowed: false })
    expect(await take(other, 0, 1)).toMatchObject({ allowed: true })
  })

  it('applies a lowered limit', async () => {
    const key = freshKey()
    await take(key, 0, 5)
    await take(key, 0, 5)
    await take(key, 0, 5)
    expect(await take(key, 1, 2)).toEqual({ allowed: false, remaining: 0, resetSeconds: 60 })
  })

  it('admits exactly the count when two processes count concurrently', async () => {
    const key = freshKey()
    const [one, other] = opened.limiters
    const verdictPromises = Array.from({ length: 40 }, (_, index) =>
      (index % 2 === 0 ? one : other).take(key, { count: 15, seconds: 60 }, start),
    )
    const verdicts = await Promise.all(verdictPromises)
    expect(verdicts.filter(({ allowed }) => allowed)).toHaveLength(15)
  })

  it('counts each request of a busy client, and gives back within seconds what it took ahead', async () => {
    const key = freshKey()
    for (let sent = 1; sent <= 100; sent += 1)
      expect(await take(key, sent, 1_000)).toEqual({
        allowed: true,
        remaining: 1_000 - sent,
        resetSeconds: 60,
      })
    let asked = 0
    await vi.waitFor(
      async () => {
        asked += 1
        const other = await opened.limiters[1].take(key, { count: 1_000, seconds: 60 }, later(200))
        expect(other.remaining).toBe(1_000 - 100 - asked)
      },
      { timeout: 10_000, interval: 300 },
    )
  })

  it('never admits more than the count to busy processes together', async () => {
    const key = freshKey()
    const limit = { count: 400, seconds: 60 }
    const countAdmitted = async (limiter: RateLimiter) => {
      let allowed = 0
      for (let round = 0; round < 40; round += 1) {
        const verdicts = await Promise.all(Array.from({ length: 10 }, () => limiter.take(key, limit, start)))
        allowed += verdicts.filter((verdict) => verdict.allowed).length
      }
      return allowed
    }
    const [one, other] = await Promise.all(opened.limiters.map(countAdmitted))
    // Counts that one process took ahead and did not use may be missing for the other.
    expect((one ?? 0) + (other ?? 0)).toBeOneOf(Array.from({ length: 51 }, (_, missing) => 400 - missing))
  })

  it('takes nothing ahead from the second half of a window, nor from the next window', async () => {
    const key = freshKey()
    const limit = { count: 64, seconds: 60 }
    for (let sent = 1; sent <= 40; sent += 1) await opened.limiters[0].take(key, limit, start)
    expect(await opened.limiters[1].take(key, limit, start)).toMatchObject({ remaining: 64 - 41 })
    expect(await opened.limiters[0].take(key, limit, later(60_000))).toMatchObject({ remaining: 63 })
    expect(await opened.limiters[1].take(key, limit, later(60_000))).toMatchObject({ remaining: 62 })
  })
})

describe('rate limiter: an unreachable store', () => {
  it('throws soon, and never returns a verdict', async () => {
    const limiter = createRedisRateLimiter('redis://127.0.0.1:1')
    await expect(limiter.take('test:unreachable', { count: 1, seconds: 1 }, start)).rejects.toThrow()
    await limiter.close()
  })
})

describe.skipIf(redisUrl === undefined)('the Redis limiter', () => {
  it('gives back once, also when the connection is lost before the answer and the command is sent again', async () => {
    const { hostname, port } = new URL(redisUrl ?? '')
    let losesAnswers = false
    let lost = 0
    const proxy = createServer((client) => {
      const server = connect(Number(port), hostname)
      client.on('error', () => {}).on('data', (bytes) => server.write(bytes))
      server
        .on('error', () => {})
        .on('data', (bytes) => {
          if (losesAnswers) {
            losesAnswers = false
            lost += 1
            client.destroy()
          } else client.write(bytes)
        })
      client.on('close', () => server.destroy())
    })
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    const address = proxy.address()
    const limiter = createRedisRateLimiter(
      `redis://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    )
    const direct = createRedisRateLimiter(redisUrl ?? '')
    const key = freshKey()
    const limit = { count: 1_600, seconds: 60 }
    try {
      for (let sent = 0; sent < 70; sent += 1) await limiter.take(key, limit, start)
      losesAnswers = true
      await vi.waitFor(() => expect(lost).toBe(1), { timeout: 10_000, interval: 50 })
      // Answered after what is sent again.
      await vi.waitFor(() => limiter.take(freshKey(), limit, start), { timeout: 10_000 })
      expect((await direct.take(key, limit, start)).remaining).toBe(1_600 - 70 - 1)
    } finally {
      await limiter.close()
      await direct.close()
      proxy.close()
    }
  })

  it('recovers when Redis has lost the script, as after a restart', async () => {
    const limiter = createRedisRateLimiter(redisUrl ?? '')
    const redis = new Redis(redisUrl ?? '')
    const key = freshKey()
    const limit = { count: 2, seconds: 60 }
    expect((await limiter.take(key, limit, later(0))).remaining).toBe(1)
    await redis.script('FLUSH')
    expect((await limiter.take(key, limit, later(1))).remaining).toBe(0)
    redis.disconnect()
    await limiter.close()
  })
})
