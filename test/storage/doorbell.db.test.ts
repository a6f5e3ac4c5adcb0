import pg from 'pg'
import { expect, it } from 'vitest'
import { silentLog } from '../../src/core/base/log.ts'
import { openDoorbell } from '../../src/storage/doorbell.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { startTcpProxy, through } from '../faults/tcp-proxy.ts'

it.skipIf(testServerUrl === undefined)(
  'rings at other processes, not at its own, and again after its connection was cut',
  async () => {
    const { url, drop } = await createTestDatabase(testServerUrl ?? '')
    let rings = 0
    const heard: (() => void)[] = []
    const onRing = () => {
      rings += 1
      for (const resolve of heard.splice(0)) resolve()
    }
    const nextRing = () => new Promise<void>((resolve) => heard.push(resolve))
    const connected = nextRing()
    const doorbell = openDoorbell({ url, onRing, log: silentLog })
    await connected
    const other = new pg.Client({ connectionString: url })
    await other.connect()

    const rung = nextRing()
    await other.query("notify bursar_activity, 'another process'")
    await rung
    const before = rings
    doorbell.ring()
    await other.query("notify bursar_activity, 'another process'")
    while (rings === before) await nextRing()
    expect(rings).toBe(before + 1)

    const reconnected = nextRing()
    await other.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'bursar doorbell' and datname = current_database()",
    )
    await reconnected
    const again = nextRing()
    await other.query("notify bursar_activity, 'another process'")
    await again

    await doorbell.close()
    await other.end()
    await drop()
  },
)

it.skipIf(testServerUrl === undefined)(
  'reconnects when its server is silent, as after a lost route',
  async () => {
    const { url, drop } = await createTestDatabase(testServerUrl ?? '')
    const server = new URL(url)
    const proxy = await startTcpProxy(Number(server.port || 5432), server.hostname)
    let heard = () => {}
    const nextRing = () =>
      new Promise<void>((resolve) => {
        heard = resolve
      })
    const connected = nextRing()
    const doorbell = openDoorbell({
      url: through(proxy, url),
      onRing: () => heard(),
      log: silentLog,
      silenceMs: 200,
    })
    await connected
    const reconnected = nextRing()
    proxy.forget()
    doorbell.ring()
    await expect(reconnected).resolves.toBeUndefined()
    await doorbell.close()
    await proxy.close()
    await drop()
  },
)
