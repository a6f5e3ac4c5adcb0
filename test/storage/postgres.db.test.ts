import { createServer } from 'node:net'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Database } from '../../src/storage/database.ts'
import { functions } from '../../src/storage/functions.ts'
import { migrations } from '../../src/storage/migrations.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createEmptyDatabase, testServerUrl } from '../engines.ts'

const ping = { name: 'ping', text: 'select pg_backend_pid() as pid' }

describe('an unreachable PostgreSQL server', () => {
  it('throws provider_unavailable, through every interface', async () => {
    const server = createServer()
    const port = await new Promise<number>((resolve) =>
      server.listen(0, '127.0.0.1', () => {
        const address = server.address()
        resolve(typeof address === 'object' && address !== null ? address.port : 0)
      }),
    )
    await new Promise((resolve) => server.close(resolve))
    const database = await openPostgres({ url: `postgres://postgres@127.0.0.1:${port}/none` })
    const expected = { code: 'provider_unavailable', members: { retryAfter: 1 } }
    await expect(database.call(ping, [])).rejects.toMatchObject(expected)
    await expect(database.kysely.selectFrom('account').selectAll().execute()).rejects.toMatchObject(expected)
    await expect(database.transaction(async () => {})).rejects.toMatchObject(expected)
    await database.close()
  })
})

describe.skipIf(testServerUrl === undefined)('a PostgreSQL server', () => {
  let database: Database
  let url = ''
  let drop = async () => {}
  const terminate = async (pid: number) => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query('select pg_terminate_backend($1)', [pid])
    await client.end()
  }

  beforeAll(async () => {
    const created = await createEmptyDatabase(testServerUrl ?? '')
    url = created.url
    drop = created.drop
    database = await openPostgres({ url, poolSize: 1 })
  })
  afterAll(async () => {
    await database.close()
    await drop()
  })

  it('keeps a few sessions at rest, and ends the others', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const several = await openPostgres({ url, poolSize: 8 })
    try {
      const busy = { name: 'busy', text: 'select pg_backend_pid() as pid, pg_sleep(0.1)' }
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => several.call<{ pid: number }>(busy, [])),
      )
      expect(several.connections()).toEqual({ busy: 0, idle: 8, waiting: 0 })
      vi.advanceTimersByTime(60_000)
      expect(several.connections()).toEqual({ busy: 0, idle: 4, waiting: 0 })
      const [row] = await several.call<{ pid: number }>(ping, [])
      expect(answers.flat().map(({ pid }) => pid)).toContain(row?.pid)
    } finally {
      vi.useRealTimers()
      await several.close()
    }
  })

  it('is migrated once by several processes that start concurrently', async () => {
    const others = await Promise.all([1, 2, 3].map(() => openPostgres({ url })))
    const all = [...Object.keys(migrations), ...functions.map(({ name }) => `function ${name}`)]
    expect(await database.pendingMigrations()).toEqual(all)
    const applied = await Promise.all([database, ...others].map((process) => process.migrate()))
    expect(applied.flat()).toEqual(all)
    await Promise.all(others.map((process) => process.close()))
  })

  it('can close an idle connection: the next call opens a new one', async () => {
    const [row] = await database.call<{ pid: number }>(ping, [])
    await terminate(row?.pid ?? 0)
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(await database.call(ping, [])).toHaveLength(1)
  })

  it('can close a connection in use: the transaction fails as unavailable and the next one works', async () => {
    const cut = database.transaction(async ({ call }) => {
      const [row] = await call<{ pid: number }>(ping, [])
      await terminate(row?.pid ?? 0)
      await new Promise((resolve) => setTimeout(resolve, 50))
      await call(ping, [])
    })
    await expect(cut).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(await database.transaction(({ call }) => call(ping, []))).toHaveLength(1)
  })

  it('limits statements, lock waits and idle transactions', async () => {
    const text =
      "select name, setting from pg_settings where name ~ '^(statement|lock|idle_in_transaction_session)_timeout$' order by name"
    expect(await database.call({ name: 'timeouts', text }, [])).toEqual([
      { name: 'idle_in_transaction_session_timeout', setting: '6000' },
      { name: 'lock_timeout', setting: '4000' },
      { name: 'statement_timeout', setting: '5000' },
    ])
  })
})
