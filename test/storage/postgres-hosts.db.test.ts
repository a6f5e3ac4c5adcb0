import { expect, it } from 'vitest'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'

it.skipIf(testServerUrl === undefined)(
  'keeps its host while all sessions are busy, although a caller waits in vain for one',
  async () => {
    const { url, drop } = await createTestDatabase(testServerUrl ?? '')
    const { host, port, pathname, username } = new URL(url)
    const server = port === '' ? `${host}:5432` : host
    const database = await openPostgres({
      url: `postgres://${username}@${server},${server}${pathname}`,
      poolSize: 1,
    })
    const pid = { name: 'backend_pid', text: 'select pg_backend_pid() as pid' }
    const [before] = await database.call<{ pid: number }>(pid, [])
    await database.transaction(async (connection) => {
      await connection.call(pid, [])
      await expect(database.call(pid, [])).rejects.toMatchObject({ code: 'provider_unavailable' })
      await connection.call(pid, [])
    })
    expect(await database.call<{ pid: number }>(pid, [])).toEqual([before])
    await database.close()
    await drop()
  },
)
