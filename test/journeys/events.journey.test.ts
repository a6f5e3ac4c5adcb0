/** Events over real HTTP, listed and streamed by two gateways on one database. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { freePort } from '../free-port.ts'
import { eventShape, openStream } from './event-stream.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person } from './people.ts'

const page = z.object({ events: z.array(eventShape), nextCursor: z.string().nullable() })
const GENEROUS = { timeout: 15_000, interval: 50 }

describe.skipIf(testServerUrl === undefined)('events of two gateways', () => {
  let drop = async () => {}
  let first: Gateway
  let second: Gateway
  let envOfSecond: Record<string, string>

  beforeAll(async () => {
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = created.drop
    const [port, other] = [await freePort(), await freePort()]
    const env = {
      DATABASE_URL: created.url,
      CHAIN: 'simulated',
      RATE_MUTATIONS: '100000/60',
      PUBLIC_ORIGIN: `http://127.0.0.1:${port}`,
    }
    first = await startGateway({ ...env, PORT: String(port) })
    envOfSecond = { ...env, PORT: String(other) }
    second = await startGateway(envOfSecond)
  }, 120_000)
  afterAll(async () => {
    await first?.stop()
    await second?.stop()
    await drop()
  })

  const listEvents = async (person: Person, query = '') =>
    page.parse((await person.send('GET', `/api/events${query}`)).body)
  const issueCard = (person: Person) => person.send('POST', '/api/cards', {})
  const createKey = async (person: Person, scopes: string[]) => {
    const { body } = await person.send('POST', '/api/developer/keys', { name: 'Reader', scopes })
    return { token: z.string().parse(body.key), id: z.string().parse(body.id) }
  }

  it('are listed oldest first, by page and type, and only to their account', async () => {
    const [ada, bob] = [await newGuest(first.origin), await newGuest(first.origin)]
    for (let cards = 0; cards < 3; cards += 1) expect((await issueCard(ada)).status).toBe(200)
    const { events } = await listEvents(ada)
    // A guest begins with a card and with money.
    expect(events.filter(({ type }) => type === 'card.issued')).toHaveLength(4)
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1))
    expect(new Set(events.map(({ accountId }) => accountId))).toEqual(new Set([ada.accountId]))
    const begin = await listEvents(ada, '?limit=2')
    expect(begin.events).toEqual(events.slice(0, 2))
    expect(await listEvents(ada, `?after=${begin.nextCursor}`)).toEqual({
      events: events.slice(2),
      nextCursor: null,
    })
    expect((await listEvents(ada, '?type=card.issued,key.created')).events).toHaveLength(4)
    for (const after of [events[0]?.id, 'evt_00000000000000000000000000', 'nonsense'])
      expect((await bob.send('GET', `/api/events?after=${after}`)).status).toBe(400)
    expect((await ada.send('GET', '/api/events?type=card.eaten')).status).toBe(400)
  })

  it('reach streams of the other gateway, and a stream that comes back misses none', async () => {
    const ada = await newGuest(first.origin)
    const stream = await openStream(`${second.local}/api/events`, ada.token)
    expect(stream.response.headers.get('content-type')).toBe('text/event-stream')
    await vi.waitFor(() => expect(stream.lastEventId()).not.toBe(''), GENEROUS)
    const start = stream.lastEventId()
    expect((await issueCard(ada)).status).toBe(200)
    await vi.waitFor(() => expect(stream.events.map(({ type }) => type)).toEqual(['card.issued']), GENEROUS)
    stream.close()
    await stream.ended
    await issueCard(ada)
    await issueCard(ada)
    const resumed = await openStream(`${first.origin}/api/events`, ada.token, {
      'last-event-id': stream.lastEventId(),
    })
    await issueCard(ada)
    await vi.waitFor(() => expect(resumed.events).toHaveLength(3), GENEROUS)
    const all = (await listEvents(ada, `?after=${start}`)).events
    expect([...stream.events, ...resumed.events]).toEqual(all)
    resumed.close()
  })

  it('events of a key are its own, and its stream ends with it', async () => {
    const ada = await newGuest(first.origin)
    const blind = await createKey(ada, ['cards:read'])
    expect((await openStream(`${first.origin}/api/events`, blind.token)).response.status).toBe(403)
    const { token, id } = await createKey(ada, ['events:read'])
    const stream = await openStream(`${second.local}/api/events`, token, { 'last-event-id': '0' })
    await issueCard(ada)
    await vi.waitFor(() => expect(stream.events).toHaveLength(1), GENEROUS)
    expect(stream.events[0]).toMatchObject({ type: 'key.created', agentId: id })
    expect((await ada.send('DELETE', `/api/developer/keys/${id}`)).status).toBe(200)
    await stream.ended
    expect(stream.events).toHaveLength(1)
  })

  it('are streamed to a bounded number of clients of an account, and a closed one makes room', async () => {
    const ada = await newGuest(first.origin)
    const open = () => openStream(`${first.origin}/api/events`, ada.token)
    // The fields alone are no stream.
    const headers = { accept: 'text/event-stream', authorization: `Bearer ${ada.token}` }
    for (let count = 0; count < 20; count += 1) {
      const { status, headers: fields } = await fetch(`${first.origin}/api/events`, {
        method: 'HEAD',
        headers,
      })
      expect([status, fields.get('content-type')]).toEqual([200, 'text/event-stream'])
    }
    const streams = await Promise.all(Array.from({ length: 20 }, open))
    expect(streams.map(({ response }) => response.status)).toEqual(streams.map(() => 200))
    expect((await open()).response.status).toBe(429)
    for (const stream of streams.slice(1)) stream.close()
    await vi.waitFor(async () => {
      const more = await open()
      more.close()
      expect(more.response.status).toBe(200)
    }, GENEROUS)
    streams[0]?.close()
    await streams[0]?.ended
    // Clients that go away are nothing to warn of.
    expect(first.output()).not.toContain('a stream of events failed')
  })

  it('end their streams when the gateway drains', async () => {
    const ada = await newGuest(second.local)
    const stream = await openStream(`${second.local}/api/events`, ada.token)
    expect(stream.response.status).toBe(200)
    expect(await second.stop()).toBe(0)
    await stream.ended
    second = await startGateway(envOfSecond)
  })
})
