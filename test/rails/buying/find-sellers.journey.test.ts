/** Finding sellers: own purchases, the sandbox's sellers, and a service that lists others; and the policy that judges records. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Agent, newAgent } from '../../journeys/agent.ts'
import { type Gateway, startGateway } from '../../journeys/gateway.ts'
import { newGuest, type Person, requestJson } from '../../journeys/people.ts'
import { listen } from '../selling/x402/scene.ts'
import { hasAnvil } from '../selling/x402/world.ts'

const credentials = z.object({ chain: z.object({ tokens: z.object({ USDC: z.string() }) }) })
const answer = z.object({
  sellers: z.array(
    z.looseObject({
      url: z.string(),
      name: z.string(),
      source: z.string(),
      price: z.string(),
      record: z.unknown(),
    }),
  ),
})
const policy = {
  perTransaction: { max: '1' },
  dailyBudget: { max: '5' },
  categories: { allow: ['x402'] },
}

describe.skipIf(!hasAnvil())('finding sellers', () => {
  let gateway: Gateway
  let owner: Person
  let asked = 0
  let isDown = false
  let items: unknown[] = []
  let bazaar: Awaited<ReturnType<typeof listen>>

  beforeAll(async () => {
    bazaar = await listen({
      fetch: (request: Request) => {
        asked += 1
        const { pathname } = new URL(request.url)
        if (isDown || pathname !== '/x402/discovery/resources') return new Response('no', { status: 500 })
        return Response.json({
          x402Version: 2,
          items,
          pagination: { limit: 100, offset: 0, total: items.length },
        })
      },
    })
    gateway = await startGateway({
      RATE_MUTATIONS: '100000/60',
      BAZAAR_URLS: `http://127.0.0.1:${bazaar.port}/x402`,
    })
    const { chain } = credentials.parse(
      (await requestJson(gateway.origin, 'GET', '/sandbox/credentials')).body,
    )
    const exact = { scheme: 'exact', network: 'eip155:84532', asset: chain.tokens.USDC, payTo: '0xb' }
    const entry = (resource: string, more: object = {}) => ({
      resource,
      type: 'http',
      x402Version: 2,
      accepts: [{ ...exact, amount: '2500' }],
      lastUpdated: 1,
      ...more,
    })
    items = [
      entry('https://listed.example/tides', {
        serviceName: 'Tides\u202e\u0007',
        description: 'Tides of the sea',
      }),
      entry('https://listed.example/other-chain', {
        accepts: [{ ...exact, network: 'eip155:1', amount: '1' }],
      }),
      entry('https://listed.example/fake', {
        accepts: [{ ...exact, asset: `0x${'1'.repeat(40)}`, amount: '1' }],
      }),
      entry('http://169.254.169.254/latest/meta-data'),
      entry('https://10.0.0.1/private'),
      entry('javascript:alert(1)'),
      entry('https://listed.example/tool', { type: 'mcp' }),
      { resource: 7 },
      null,
    ]
    owner = await newGuest(gateway.origin)
  }, 120_000)
  afterAll(async () => {
    await gateway?.stop()
    bazaar?.server.close()
  }, 60_000)

  const newBuyer = async (more: object = {}) => {
    const agent: Agent = await newAgent()
    const { body } = await owner.send('POST', '/api/agents/keys', {
      name: 'Buyer',
      publicKey: agent.jwk,
      scopes: ['purchases:pay'],
      policy: { ...policy, ...more },
    })
    expect(body.agentId).toBeDefined()
    const send = async (method: string, path: string, input?: object) => {
      const url = `${gateway.origin}${path}`
      const response = await agent.fetch({
        method,
        url,
        ...(input === undefined ? {} : { body: JSON.stringify(input), idempotencyKey: crypto.randomUUID() }),
      })
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    }
    const find = async (query: string) =>
      answer.parse((await send('GET', `/api/sellers?${query}`)).body).sellers
    const buy = (name: string) =>
      send('POST', '/api/purchases', { url: `${gateway.origin}/sandbox/sellers/${name}`, maxAmount: '0.05' })
    return { find, buy, send }
  }

  it('lists the sandbox’s sellers and what a service lists, of which nothing but public URLs for our assets is believed', async () => {
    const { find, send } = await newBuyer()
    const listed = await find('query=listed.example')
    expect(listed).toEqual([
      {
        origin: 'https://listed.example',
        url: 'https://listed.example/tides',
        name: 'Tides',
        about: 'Tides of the sea',
        protocol: 'x402-v2',
        price: '0.0025',
        asset: 'USDC',
        source: 'bazaar',
        record: null,
      },
    ])
    const cheap = await find('sort=price&maxPrice=0.01')
    expect(cheap.map(({ price }) => Number(price))).toEqual(
      cheap.map(({ price }) => Number(price)).toSorted((one, other) => one - other),
    )
    expect(cheap.some(({ url }) => url.endsWith('/weather'))).toBe(true)
    expect(cheap.some(({ url }) => url.endsWith('/report'))).toBe(false)
    expect((await find('query=forecast json')).map(({ name }) => name)).toEqual(['weather'])
    expect(await find('asset=EURC')).toEqual([])
    expect((await send('GET', '/api/sellers?maxPrice=0.0000001')).status).toBe(400)
    // The service was asked once, and is not needed any more.
    const before = asked
    isDown = true
    expect(await find('query=tides')).toHaveLength(1)
    expect(asked).toBe(before)
  })

  it('tells what became of one’s purchases', async () => {
    const { find, buy } = await newBuyer()
    expect((await buy('weather')).body).toMatchObject({ status: 'delivered' })
    expect((await buy('times-out')).body).toMatchObject({ status: 'undelivered' })
    const [weather] = await find('query=sellers/weather')
    expect(weather).toMatchObject({
      source: 'own',
      price: '0.01',
      about: 'A forecast as JSON.',
      record: { of: 'own', purchases: 1, delivered: 1, undelivered: 0, refunded: 0 },
    })
    const [failing] = await find('query=times-out')
    expect(failing).toMatchObject({ record: { purchases: 1, delivered: 0, undelivered: 1 } })
    const all = (await find('query=sandbox/sellers')).map(({ url }) => url.split('/').at(-1))
    expect(all.at(0)).toBe('weather')
    expect(all.at(-1)).toBe('times-out')
    // Another account is told nothing of it.
    const stranger = await newGuest(gateway.origin)
    const { body } = await stranger.send('GET', '/api/sellers?query=weather')
    expect(answer.parse(body).sellers).toMatchObject([{ source: 'sandbox', record: null }])
  })

  it('denies sellers with a bad record, and asks about unknown ones', async () => {
    const { buy } = await newBuyer({ sellers: { minDelivered: { of: 1, ratio: 0.5 }, unknown: 'deny' } })
    expect((await buy('weather')).body).toMatchObject({ status: 'delivered' })
    expect((await buy('times-out')).body).toMatchObject({
      code: 'policy_denied',
      violations: [{ rule: 'seller_record', limit: '0.5', requested: '0' }],
    })
    expect((await buy('image')).body).toMatchObject({
      code: 'policy_denied',
      violations: [{ rule: 'seller_record', requested: null }],
    })
    const asking = await newBuyer({
      sellers: { minDelivered: { of: 1, ratio: 0.5 }, unknown: 'ask' },
      approval: { above: '1' },
    })
    expect((await asking.buy('image')).body).toMatchObject({ code: 'approval_required' })
    expect((await asking.buy('weather')).body).toMatchObject({ status: 'delivered' })
  })

  it('judges a seller by the policy of every key on the path', async () => {
    const { body: root } = await owner.send('POST', '/api/developer/keys', {
      name: 'Root',
      scopes: ['purchases:pay', 'agents:delegate'],
      policy: { ...policy, sellers: { minDelivered: { of: 1, ratio: 1 }, unknown: 'deny' } },
    })
    const call = (key: unknown, path: string, body: object) =>
      requestJson(gateway.origin, 'POST', path, {
        body,
        headers: { authorization: `Bearer ${String(key)}`, 'idempotency-key': crypto.randomUUID() },
      })
    const { body: child } = await call(root.key, '/api/agents/delegations', {
      name: 'Child',
      scopes: ['purchases:pay'],
      policy,
      expiresAt: new Date(Date.now() + 600_000).toISOString(),
      bearer: true,
    })
    const url = `${gateway.origin}/sandbox/sellers/times-out`
    expect((await call(child.key, '/api/purchases', { url, maxAmount: '0.05' })).body).toMatchObject({
      violations: [{ rule: 'seller_record', agentId: root.id }],
    })
  })
})
