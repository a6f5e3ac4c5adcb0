/** Readiness of a gateway: its conditions, and shutdown. */
import { once } from 'node:events'
import { connect } from 'node:net'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { createTestDatabase, testServerUrl } from '../../engines.ts'
import { startGateway } from '../../journeys/gateway.ts'

describe('a gateway', () => {
  it('is ready without rail controls: it reports their outage itself', async () => {
    const gateway = await startGateway({ CHAIN: 'simulated', RAIL_CONTROLS_URL: 'http://127.0.0.1:1' })
    try {
      const ready = await fetch(`${gateway.origin}/readyz`)
      expect([ready.status, await ready.json()]).toEqual([
        200,
        {
          status: 'ok',
          checks: { database: 'ok', chain: 'ok', rateLimits: 'ok', railControls: 'unavailable' },
        },
      ])
    } finally {
      await gateway.stop()
    }
  })

  it('is not ready after SIGTERM, and finishes open requests', async () => {
    const gateway = await startGateway({ CHAIN: 'simulated', LOG_LEVEL: 'info' })
    const { host, port } = new URL(gateway.origin)
    const socket = connect(Number(port), '127.0.0.1')
    let answer = ''
    socket.setEncoding('utf8').on('data', (part: string) => {
      answer += part
    })
    const closed = once(socket, 'close')
    const body = '{}'
    socket.write(
      `POST /api/auth/guest HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
    )
    await expect.poll(() => socket.bytesWritten, { timeout: 5_000 }).toBeGreaterThan(0)
    // The first half must have arrived, or no request is open.
    await new Promise((resolve) => setTimeout(resolve, 200))
    const ended = gateway.stop()
    await expect.poll(() => gateway.output(), { timeout: 5_000 }).toContain('"msg":"draining"')
    // A probe uses an address, regardless of the gateway's name.
    socket.write(`${body}GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    await closed
    expect(await ended).toBe(0)
    const [guest = '', ready = ''] = answer.split(/(?=HTTP\/1\.1 503)/)
    expect(guest).toMatch(/^HTTP\/1\.1 200 OK/)
    expect(guest).toContain('"sessionToken"')
    expect(ready).toMatch(/^HTTP\/1\.1 503/)
    expect(ready).toContain('{"status":"draining","checks":{}}')
  })
})

describe.skipIf(testServerUrl === undefined)('a gateway on a server', () => {
  it('warns that another one has its own chain, and queries the database one at a time', async () => {
    const { url, drop } = await createTestDatabase(testServerUrl ?? '')
    const env = { CHAIN: 'simulated', DATABASE_URL: url }
    const first = await startGateway(env)
    try {
      for (let guests = 0; guests < 2; guests += 1) {
        const { status } = await fetch(`${first.origin}/api/auth/guest`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: '{}',
        })
        expect(status).toBe(200)
      }
      const second = await startGateway(env)
      await second.stop()
      expect(second.output()).toContain('another gateway on this database also runs its own local chain')
      expect(second.output()).not.toContain('DeprecationWarning')
    } finally {
      await first.stop()
    }
    const third = await startGateway(env)
    await third.stop()
    for (const { output } of [first, third]) expect(output()).not.toContain('another gateway')
    await drop()
  }, 60_000)

  it('is not ready while a migration is missing', async () => {
    const { url, drop } = await createTestDatabase(testServerUrl ?? '')
    const gateway = await startGateway({ CHAIN: 'simulated', DATABASE_URL: url })
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    try {
      expect((await fetch(`${gateway.origin}/readyz`)).status).toBe(200)
      const { rows } = await client.query(
        'delete from kysely_migration where name = (select max(name) from kysely_migration) returning *',
      )
      expect(rows).toHaveLength(1)
      const lacking = await fetch(`${gateway.origin}/readyz`)
      expect([lacking.status, await lacking.json()]).toMatchObject([
        503,
        { checks: { database: 'unavailable' } },
      ])
    } finally {
      await client.end()
      await gateway.stop()
      await drop()
    }
  })
})
