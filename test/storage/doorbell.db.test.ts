import pg from 'pg'
import { expect, it } from 'vitest'
import { silentLog } from '../../src/core/base/log.ts'
import { openDoorbell } from '../../src/storage/doorbell.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'

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
