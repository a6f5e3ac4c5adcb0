/** Webhook endpoints over real HTTP: deliveries, signatures, rotation, filters, retries, and the URLs that are refused. */
import { createServer } from 'node:http'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { sharedGateway } from './gateway.ts'
import { newGuest, type Person } from './people.ts'
import { type Receiver, startReceiver } from './webhook-receiver.ts'

const GENEROUS = { timeout: 20_000, interval: 50 }
const created = z.object({ id: z.string(), secret: z.string(), status: z.string() })
const deliveries = z.object({
  deliveries: z.array(
    z.object({
      id: z.string(),
      eventId: z.string(),
      type: z.string(),
      status: z.string(),
      attempts: z.array(z.object({ httpStatus: z.int().nullable(), error: z.string().nullable() })),
      nextAttemptAt: z.string().nullable(),
    }),
  ),
})

describe('webhook endpoints', () => {
  const origin = sharedGateway()
  let ada: Person
  const receivers: Receiver[] = []

  beforeAll(async () => {
    ada = await newGuest(origin)
  })
  afterAll(async () => {
    await Promise.all(receivers.map((receiver) => receiver.close()))
  })

  const receiverWith = async (answer?: Parameters<typeof startReceiver>[0]) => {
    const receiver = await startReceiver(answer)
    receivers.push(receiver)
    return receiver
  }
  const create = async (person: Person, url: string, more: object = {}) => {
    const { status, body } = await person.send('POST', '/api/webhook-endpoints', { url, ...more })
    expect({ status, body }).toMatchObject({ status: 200 })
    return created.parse(body)
  }
  const path = (id: string) => `/api/webhook-endpoints/${id}`
  const readDeliveries = async (person: Person, id: string) =>
    deliveries.parse((await person.send('GET', `${path(id)}/deliveries`)).body).deliveries
  const issueCard = (person: Person) => person.send('POST', '/api/cards', {})

  it('receive the types they ask for, signed, exactly as the list shows them', async () => {
    const receiver = await receiverWith()
    const { id, secret } = await create(ada, receiver.url, { types: ['card.issued'] })
    receiver.trust(secret)
    await ada.send('POST', '/api/developer/keys', { name: 'Other', scopes: ['cards:read'] })
    await issueCard(ada)
    await vi.waitFor(() => expect(receiver.received).toHaveLength(1), GENEROUS)
    const [sent] = receiver.received
    const { body } = await ada.send('GET', '/api/events?type=card.issued')
    expect(z.array(z.unknown()).parse(body.events).at(-1)).toEqual(sent?.event)
    expect(sent?.headers['webhook-id']).toBe(sent?.event.id)
    await vi.waitFor(async () => {
      expect(await readDeliveries(ada, id)).toMatchObject([
        {
          type: 'card.issued',
          status: 'delivered',
          attempts: [{ httpStatus: 204, error: null }],
          nextAttemptAt: null,
        },
      ])
    }, GENEROUS)
    // The secret is shown once, and not kept in the clear anywhere that answers.
    const { body: shown } = await ada.send('GET', path(id))
    expect(JSON.stringify(shown)).not.toContain('whsec_')
    expect(receiver.forged).toEqual([])
  })

  it('are signed by both secrets after a rotation, and tested by a ping of their own', async () => {
    const bob = await newGuest(origin)
    const [receiver, other] = [await receiverWith(), await receiverWith()]
    const { id, secret } = await create(bob, receiver.url, { types: ['transfer.failed'] })
    await create(bob, other.url)
    receiver.trust(secret)
    const { body } = await bob.send('POST', `${path(id)}/rotate`)
    const renewed = z.string().parse(body.secret)
    expect(renewed).not.toBe(secret)
    expect((await bob.send('POST', `${path(id)}/test`)).status).toBe(200)
    await vi.waitFor(() => expect(receiver.received).toHaveLength(1), GENEROUS)
    const [sent] = receiver.received
    expect(sent?.event).toMatchObject({ type: 'ping', object: { id } })
    expect(() => new Webhook(renewed).verify(sent?.body ?? '', { ...sent?.headers })).not.toThrow()
    const types = () => [...other.received.map(({ event }) => event.type), ...other.forged]
    expect(types().filter((type) => type.includes('ping'))).toEqual([])
  })

  it('are tried again after a failure, and at once on request', async () => {
    const bob = await newGuest(origin)
    let status = 500
    const receiver = await receiverWith((response) => response.writeHead(status, { location: origin }).end())
    const { id, secret } = await create(bob, receiver.url)
    receiver.trust(secret)
    // A redirect is no delivery, and is not followed.
    status = 302
    await issueCard(bob)
    await vi.waitFor(async () => {
      expect(await readDeliveries(bob, id)).toMatchObject([
        { status: 'pending', attempts: [{ httpStatus: 302, error: 'status' }] },
      ])
    }, GENEROUS)
    status = 200
    const [first] = await readDeliveries(bob, id)
    const retry = `${path(id)}/deliveries/${first?.id}/retry`
    expect((await bob.send('POST', retry)).body).toMatchObject({ status: 'pending' })
    await vi.waitFor(async () => {
      expect(await readDeliveries(bob, id)).toMatchObject([
        { status: 'delivered', attempts: [{}, { httpStatus: 200 }] },
      ])
    }, GENEROUS)
    expect(new Set(receiver.received.map(({ event }) => event.id)).size).toBe(1)
    expect((await ada.send('POST', retry)).status).toBe(404)
  })

  it('are nobody else’s, are ten at most, and stop when they are disabled or deleted', async () => {
    const bob = await newGuest(origin)
    const receiver = await receiverWith()
    const { id, secret } = await create(bob, receiver.url)
    receiver.trust(secret)
    for (const [method, at] of [
      ['GET', path(id)],
      ['PATCH', path(id)],
      ['DELETE', path(id)],
      ['POST', `${path(id)}/rotate`],
      ['POST', `${path(id)}/test`],
      ['GET', `${path(id)}/deliveries`],
    ] as const)
      expect((await ada.send(method, at, method === 'GET' ? undefined : {})).status).toBe(404)
    const more = await Promise.all(
      Array.from({ length: 12 }, () => bob.send('POST', '/api/webhook-endpoints', { url: receiver.url })),
    )
    expect(more.filter(({ status }) => status === 200)).toHaveLength(9)
    expect(more.find(({ status }) => status !== 200)).toMatchObject({
      status: 409,
      body: { code: 'conflict' },
    })
    for (const { body } of more.filter(({ status }) => status === 200))
      expect((await bob.send('DELETE', path(z.string().parse(body.id)))).status).toBe(200)
    expect((await bob.send('PATCH', path(id), { status: 'disabled' })).body).toMatchObject({
      status: 'disabled',
    })
    await issueCard(bob)
    expect((await bob.send('POST', `${path(id)}/test`)).status).toBe(409)
    expect((await bob.send('PATCH', path(id), { status: 'active' })).body).toMatchObject({ status: 'active' })
    await issueCard(bob)
    await vi.waitFor(() => expect(receiver.received).toHaveLength(1), GENEROUS)
  })

  it.each([
    'http://example.com/events',
    'https://169.254.169.254/latest/meta-data',
    'https://10.0.0.1/',
    'https://2130706433/',
    'https://[::ffff:127.0.0.1]/',
    'https://user:secret@example.com/',
    'https://example.com:22/',
    'file:///etc/passwd',
    'https://internal/',
  ])('refuse the URL %s', async (url) => {
    const { status, body } = await ada.send('POST', '/api/webhook-endpoints', { url })
    expect({ status, code: body.code }).toEqual({ status: 400, code: 'url_not_allowed' })
  })

  it('endpoints that answer without an end do not keep others waiting', async () => {
    const bob = await newGuest(origin)
    // An endless body, and no answer at all.
    const trickle = createServer((_request, response) => {
      response.writeHead(200)
      const timer = setInterval(() => response.write('x'.repeat(1_000)), 20)
      response.on('close', () => clearInterval(timer))
    }).listen(0, '127.0.0.1')
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    const receiver = await receiverWith()
    const endless = await create(bob, buildUrl(trickle))
    const unanswered = await create(bob, buildUrl(silent))
    const { secret } = await create(bob, receiver.url)
    receiver.trust(secret)
    for (let cards = 0; cards < 20; cards += 1) await issueCard(bob)
    await vi.waitFor(() => expect(receiver.received).toHaveLength(20), { timeout: 8_000, interval: 50 })
    await vi.waitFor(async () => {
      const [latest] = await readDeliveries(bob, endless.id)
      expect(latest).toMatchObject({ status: 'delivered', attempts: [{ httpStatus: 200 }] })
    }, GENEROUS)
    // No later attempts: the gateway goes on serving other tests.
    for (const { id } of [endless, unanswered]) expect((await bob.send('DELETE', path(id))).status).toBe(200)
    for (const server of [trickle, silent]) {
      server.closeAllConnections()
      server.close()
    }
  })
})

function buildUrl(server: ReturnType<typeof createServer>): string {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return `http://127.0.0.1:${address.port}/`
}
