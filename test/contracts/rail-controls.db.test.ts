import { createServer, type Server, type ServerResponse } from 'node:http'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { silentLog } from '../../src/core/base/log.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { cachedRailControls } from '../../src/providers/rail-controls/cached.ts'
import { createDatabaseRailControls } from '../../src/providers/rail-controls/database.ts'
import type { RailControl, RailControls } from '../../src/providers/rail-controls/port.ts'
import { createRemoteRailControls } from '../../src/providers/rail-controls/remote.ts'
import type { Database } from '../../src/storage/database.ts'
import { openPglite } from '../../src/storage/pglite.ts'

const start = new Date('2026-11-20T12:00:00.000Z')
const unknownFor = (retryAfter: number) => ({
  code: 'controls_unavailable',
  members: expect.objectContaining({ reason: 'plan_limit', retryAfter }),
})

async function catchRefusal(pendingReads: Promise<unknown>): Promise<Failure> {
  const thrown: unknown = await pendingReads.then(
    () => undefined,
    (error) => error,
  )
  if (!(thrown instanceof Failure)) throw new Error('no failure', { cause: thrown })
  return thrown
}

describe('rail controls: database', () => {
  let database: Database
  beforeAll(async () => {
    database = await openPglite({ directory: 'memory', now: () => start, log: silentLog })
    await database.migrate()
  })
  afterAll(() => database.close())
  afterEach(() => database.kysely.deleteFrom('rail_control').execute())

  it('returns the row’s state, whatever the default', async () => {
    const row = { rail: 'x402-fx', enabled: false, reason: 'Maintenance.', updated_at: start }
    await database.kysely.insertInto('rail_control').values(row).execute()
    const controls = createDatabaseRailControls({ database, defaultEnabled: true })
    expect(await controls.read('x402-fx')).toEqual({
      rail: 'x402-fx',
      enabled: false,
      reason: 'Maintenance.',
    })
    expect(await controls.read('wallet-transfer')).toMatchObject({ enabled: true, reason: null })
  })

  it('returns the latest state', async () => {
    const controls = createDatabaseRailControls({ database, defaultEnabled: true })
    for (const enabled of [false, true, false]) {
      await controls.write({ rail: 'x402-fx', enabled, reason: enabled ? null : 'Off.' }, start)
      expect(await controls.read('x402-fx')).toMatchObject({ enabled, reason: enabled ? null : 'Off.' })
    }
    expect(await controls.read('wallet-transfer')).toMatchObject({ enabled: true })
  })

  it('disables a rail without a row if it must be enabled first', async () => {
    const controls = createDatabaseRailControls({ database, defaultEnabled: false })
    expect(await controls.read('x402-fx')).toMatchObject({ enabled: false, reason: expect.any(String) })
  })

  it('fails closed when the database does not answer', async () => {
    const closedDatabase = await openPglite({ directory: 'memory', now: () => start, log: silentLog })
    const controls = createDatabaseRailControls({ database: closedDatabase, defaultEnabled: true })
    await closedDatabase.close()
    expect(await catchRefusal(controls.read('x402-fx'))).toMatchObject(unknownFor(5))
  })
})

describe('rail controls: remote', () => {
  let server: Server
  let url: string
  let answer: (response: ServerResponse) => void
  beforeAll(async () => {
    server = createServer((_request, response) => answer(response))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    url = `http://127.0.0.1:${address.port}/rails`
  })
  afterAll(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  const read = () => createRemoteRailControls({ url, timeoutMs: 300 }).read('x402-fx')
  const json =
    (status: number, body: unknown, headers = {}) =>
    (response: ServerResponse) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))

  it('returns the control plane’s state', async () => {
    answer = json(200, {
      rails: [
        { id: 'x402-fx', enabled: false, reason: 'Off.', more: 1 },
        { id: 'b', enabled: true },
      ],
    })
    expect(await read()).toEqual({ rail: 'x402-fx', enabled: false, reason: 'Off.' })
    answer = json(200, { rails: [{ id: 'x402-fx', enabled: true }] })
    expect(await read()).toEqual({ rail: 'x402-fx', enabled: true, reason: null })
  })

  it.each([
    ['402 without a wait', json(402, {}), 5],
    ['429 with whole seconds', json(429, {}, { 'retry-after': '37' }), 37],
    ['429 with a date', json(429, {}, { 'retry-after': 'Fri, 20 Nov 2026 12:00:00 GMT' }), 5],
    ['503 with zero seconds', json(503, {}, { 'retry-after': '0' }), 5],
    ['a redirect', (response: ServerResponse) => response.writeHead(302, { location: '/rails' }).end(), 5],
    ['invalid JSON', (response: ServerResponse) => response.end('<html>'), 5],
    ['an unexpected document', json(200, { rails: [{ id: 'x402-fx', enabled: 'yes' }] }), 5],
    ['a missing rail', json(200, { rails: [{ id: 'other', enabled: true }] }), 5],
    [
      'a rail twice',
      json(200, {
        rails: [
          { id: 'x402-fx', enabled: true },
          { id: 'x402-fx', enabled: false },
        ],
      }),
      5,
    ],
    ['a hang-up', (response: ServerResponse) => response.destroy(), 5],
    ['silence', () => {}, 5],
    [
      'an answer that never ends',
      (response: ServerResponse) => void response.writeHead(200).write('{"rails":['),
      5,
    ],
  ])('fails closed on %s', async (_name, next, retryAfter) => {
    answer = next
    expect(await catchRefusal(read())).toMatchObject(unknownFor(retryAfter))
  })

  it('leaves changes to the control plane', async () => {
    const controls = createRemoteRailControls({ url: 'http://127.0.0.1:1/rails' })
    await expect(
      controls.write({ rail: 'x402-fx', enabled: true, reason: null }, start),
    ).rejects.toMatchObject({ code: 'conflict' })
  })

  it('fails closed when nothing listens', async () => {
    const controls = createRemoteRailControls({ url: 'http://127.0.0.1:1/rails' })
    expect(await catchRefusal(controls.read('x402-fx'))).toMatchObject(unknownFor(5))
  })
})

describe('cachedRailControls', () => {
  it('drops its cached state of a changed rail', async () => {
    const { controls, reads } = setUp(async (rail) => ({ rail, enabled: true, reason: null }))
    await controls.read('x402-fx')
    await controls.write({ rail: 'x402-fx', enabled: false, reason: null }, start)
    await controls.read('x402-fx')
    expect(reads()).toBe(2)
  })

  const setUp = (read: RailControls['read']) => {
    let now = start
    let reads = 0
    const counting: RailControls = {
      read: (rail) => {
        reads += 1
        return read(rail)
      },
      write: async () => {},
    }
    const times = { ttlMs: 1500, failureTtlMs: 500 }
    return {
      controls: cachedRailControls({ controls: counting, clock: () => now }, times),
      wait: (ms: number) => {
        now = new Date(now.getTime() + ms)
      },
      reads: () => reads,
    }
  }
  const on = async (rail: RailControl['rail']): Promise<RailControl> => ({
    rail,
    enabled: true,
    reason: null,
  })

  it('reads once while an answer is valid', async () => {
    const { controls, wait, reads } = setUp(on)
    await controls.read('x402-fx')
    wait(1500)
    await controls.read('x402-fx')
    expect(reads()).toBe(1)
    wait(1)
    await controls.read('x402-fx')
    expect(reads()).toBe(2)
    await controls.read('wallet-transfer')
    expect(reads()).toBe(3)
  })

  it('shares one read among concurrent callers', async () => {
    const { promise, resolve } = createDeferred()
    const { controls, wait, reads } = setUp(async (rail) => {
      await promise
      return on(rail)
    })
    const pendingReads = [controls.read('x402-fx'), controls.read('x402-fx')]
    wait(60_000)
    pendingReads.push(controls.read('x402-fx'))
    resolve()
    expect(await Promise.all(pendingReads)).toHaveLength(3)
    expect(reads()).toBe(1)
  })

  it('caches a failure for a shorter time', async () => {
    let down = true
    const { controls, wait, reads } = setUp((rail) =>
      down ? Promise.reject(new Failure('controls_unavailable', 'Down.')) : on(rail),
    )
    await catchRefusal(controls.read('x402-fx'))
    down = false
    await catchRefusal(controls.read('x402-fx'))
    expect(reads()).toBe(1)
    wait(501)
    expect(await controls.read('x402-fx')).toMatchObject({ enabled: true })
  })
})

function createDeferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
