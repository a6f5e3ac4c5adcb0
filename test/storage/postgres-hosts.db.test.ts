import { expect, it } from 'vitest'
import { openPostgres } from '../../src/storage/postgres.ts'
import { findWritableHost } from '../../src/storage/postgres-hosts.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { startTcpProxy, through } from '../faults/tcp-proxy.ts'

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

it.skipIf(testServerUrl === undefined)(
  'rejects another host on the timeline of the lost one, whose log has parted from it',
  async () => {
    const server = new URL(testServerUrl ?? '')
    const start = () => startTcpProxy(Number(server.port || 5432), server.hostname)
    const [one, two] = [await start(), await start()]
    const urls = [through(one, server.href), through(two, server.href)]
    const first = await findWritableHost(urls)
    expect(first.timeline).toMatch(/^[0-9A-F]{8}$/)

    await expect(findWritableHost(urls, first)).resolves.toEqual(first)
    const earlier = { ...first, timeline: '00000000' }
    await expect(findWritableHost(urls.toReversed(), earlier)).resolves.toMatchObject({
      timeline: first.timeline,
    })
    const lost = first.url === urls[0] ? one : two
    lost.refuse()
    await expect(findWritableHost(urls, first)).rejects.toThrow()
    await expect(findWritableHost(urls, { ...first, timeline: 'FFFFFFFF' })).rejects.toThrow()

    await one.close()
    await two.close()
  },
)
