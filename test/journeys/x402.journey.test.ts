/** Two gateways on one PostgreSQL and one Redis, and a facilitator: no customer pays twice, wherever a process dies. */
import { once } from 'node:events'
import { request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { startAnvilChain } from '../../src/chain/node/anvil.ts'
import { silentLog } from '../../src/core/base/log.ts'
import type { Chain } from '../../src/providers/chain/port.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { newCustomer } from '../rails/selling/x402/scene.ts'
import { hasAnvil, type RemoteFacilitator, startFacilitator } from '../rails/selling/x402/world.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { requestJson } from './people.ts'

const redisUrl = process.env.TEST_REDIS_URL
const query = '/api/x402/fx?from=USD&to=EUR&amount=100'

const bought = z.looseObject({
  quoteId: z.string(),
  result: z.string(),
  payment: z.looseObject({ id: z.string(), transaction: z.string() }),
})

/** Status of a raw request target: fetch would normalize it. */
async function readStatus(origin: string, method: string, target: string): Promise<number> {
  const { hostname, port } = new URL(origin)
  const sent = request({ hostname, port, method, path: target }).end()
  const [response] = await once(sent, 'response')
  response.resume()
  return z.object({ statusCode: z.number() }).parse(response).statusCode
}

/** Clients are told apart by their forwarded addresses. */
const limits = { TRUSTED_PROXIES: '127.0.0.1', RATE_FEEDBACK: '2/4' }

describe.skipIf(testServerUrl === undefined || !hasAnvil())('x402 on two gateways', () => {
  let drop = async () => {}
  let env: Record<string, string>
  let chain: Chain
  let facilitator: RemoteFacilitator
  const gateways: Gateway[] = []
  const origins = () => gateways.map(({ origin }) => origin)

  beforeAll(async () => {
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = created.drop
    chain = await startAnvilChain({ name: 'base-sepolia', log: silentLog, binary: process.env.ANVIL_BIN })
    facilitator = await startFacilitator(chain)
    env = {
      DATABASE_URL: created.url,
      CHAIN_RPC_URL: z.string().parse(chain.rpcUrl),
      X402_FACILITATOR_URL: facilitator.url,
      ...(redisUrl === undefined ? {} : { REDIS_URL: redisUrl }),
      LOG_LEVEL: 'error',
      ...limits,
    }
    // The first one creates the tables.
    gateways.push(await startGateway(env))
    gateways.push(await startGateway(env))
  }, 120_000)
  afterAll(async () => {
    for (const gateway of gateways)
      if (gateway.process.exitCode === null && gateway.process.signalCode === null) await gateway.stop()
    await facilitator?.close()
    await chain?.close()
    await drop()
  }, 60_000)

  afterEach(() => {
    facilitator.mood = 'up'
  })

  /** A signed, unsent payment and its payer. */
  const signPayment = async (generation: 'v1' | 'v2') => {
    let payment: Record<string, string> = {}
    const customer = await newCustomer(chain, 30_000n, async (input, init) => {
      const outgoing = new Request(input, init)
      const header = ['X-PAYMENT', 'PAYMENT-SIGNATURE'].find((name) => outgoing.headers.has(name))
      if (header === undefined) return fetch(outgoing)
      payment = { [header]: outgoing.headers.get(header) ?? '' }
      return new Response(null, { status: 503 })
    })
    await customer[generation](`${origins()[0]}${query}`)
    return {
      send: (origin = '') => requestJson(origin, 'GET', query, { headers: payment }),
      spent: async () => 30_000n - (await chain.readBalance('USDC', customer.address)),
    }
  }

  it('settles a payment once when it is sent to both at once', async () => {
    const { send, spent } = await signPayment('v2')
    const settled = facilitator.settled()
    const [one, two] = origins()
    const answers = await Promise.all([one, two, one, two].map(send))
    const [first] = answers
    expect(first?.status).toBe(200)
    expect(bought.parse(first?.body).result).toMatch(/^\d+\.\d+$/)
    for (const answer of answers) expect(answer).toEqual(first)
    expect(facilitator.settled()).toBe(settled + 1)
    expect(await spent()).toBe(10_000n)
    const { payment, ...quote } = bought.parse(first?.body)
    const polled = await requestJson(two ?? '', 'GET', `/api/x402/payments/${payment.id}`)
    expect(polled).toEqual({
      status: 200,
      body: {
        id: payment.id,
        status: 'settled',
        transaction: payment.transaction,
        result: { ...quote, payment },
      },
    })
  })

  it('answers payments of both generations whose gateway was killed during settlement, and charges each once', async () => {
    const payments = [await signPayment('v1'), await signPayment('v2')]
    facilitator.mood = 'slow'
    const [, victim] = gateways
    const settled = facilitator.settled()
    const cut = Promise.all(payments.map(({ send }) => send(victim?.origin).catch(() => 'cut')))
    await expect.poll(() => facilitator.settled(), { timeout: 10_000 }).toBe(settled + 2)
    victim?.process.kill('SIGKILL')
    expect(await cut).toEqual(['cut', 'cut'])
    facilitator.mood = 'down'
    const [survivor] = origins()
    const late = await Promise.all(payments.map(({ send }) => send(survivor)))
    for (const answer of late)
      expect(answer).toMatchObject({ status: 503, body: { code: 'settlement_pending' } })
    gateways[1] = await startGateway(env)
    for (const [index, { send, spent }] of payments.entries()) {
      const id = z.string().parse(late[index]?.body.paymentId)
      const poll = () => requestJson(origins()[1] ?? '', 'GET', `/api/x402/payments/${id}`)
      expect((await poll()).status).toBe(200)
      await expect
        .poll(async () => (await poll()).body.status, { timeout: 30_000, interval: 100 })
        .toBe('settled')
      const [one, two] = await Promise.all(origins().map(send))
      expect(one).toMatchObject({ status: 200, body: { payment: { id } } })
      expect(two).toEqual(one)
      expect((await poll()).body.result).toEqual(one?.body)
      expect(await spent()).toBe(10_000n)
    }
    expect(facilitator.settled()).toBe(settled + 2)
  }, 90_000)

  it('lists its priced resources', async () => {
    const [origin = ''] = origins()
    expect(await requestJson(origin, 'GET', '/.well-known/x402')).toMatchObject({
      status: 200,
      body: {
        resources: [`${origin}/api/x402/fx`],
        items: [{ method: 'GET', accepts: [{ network: 'eip155:84532', amount: '10000' }] }],
      },
    })
  })

  it('serves nothing unpaid: HEAD, and paths that only look alike', async () => {
    const [origin = ''] = origins()
    expect(await readStatus(origin, 'HEAD', query)).toBe(405)
    for (const target of [
      '/api/x402/fx%',
      '/api/x402/%c0%80fx',
      '/api/x402/f%78%',
      '/api//x402/fx',
      '/api/x402/fx/',
    ])
      expect([target, await readStatus(origin, 'GET', `${target}?from=USD&to=EUR&amount=1`)]).toEqual([
        target,
        expect.toSatisfy((status: unknown) => status === 400 || status === 404),
      ])
    expect([402, 404]).toContain(await readStatus(origin, 'GET', '/api/x402/f%78?from=USD&to=EUR&amount=1'))
    const missing = await requestJson(origin, 'GET', '/api/x402/payments/pay_01h455vb4pex5vsknk084sn02q')
    expect(missing).toMatchObject({ status: 404, body: { code: 'not_found' } })
  })

  describe.skipIf(redisUrl === undefined)('limits with Redis', () => testLimits(origins))
})

describe.skipIf(testServerUrl === undefined)('limits of two gateways on PostgreSQL alone', () => {
  let drop = async () => {}
  const gateways: Gateway[] = []
  beforeAll(async () => {
    const created = await createTestDatabase(testServerUrl ?? '')
    drop = created.drop
    const env = { DATABASE_URL: created.url, CHAIN: 'simulated', ...limits }
    gateways.push(await startGateway(env))
    gateways.push(await startGateway(env))
  }, 120_000)
  afterAll(async () => {
    await Promise.all(gateways.map((gateway) => gateway.stop()))
    await drop()
  })

  testLimits(() => gateways.map(({ origin }) => origin))
})

function testLimits(origins: () => readonly string[]): void {
  // A client per test and run: Redis outlives them.
  const nameClient = (last: number) => `203.0.113.${last}, 2001:db8:${process.pid.toString(16)}:${last}::1`
  const post = (index: number, path: string, last: number, body: unknown = {}) =>
    fetch(`${origins()[index % 2]}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': nameClient(last) },
      body: JSON.stringify(body),
    })

  it('admit exactly 150 mutations of a client in a minute', async () => {
    const answers = await Promise.all(Array.from({ length: 200 }, (_, at) => post(at, '/api/nowhere', 1)))
    const tally = (status: number) => answers.filter((answer) => answer.status === status).length
    expect([tally(404), tally(429)]).toEqual([150, 50])
    expect((await post(0, '/api/nowhere', 2)).status).toBe(404)
  })

  it('restart the wait for early requests, and end at the announced time', async () => {
    const vote = async (index: number) => {
      const response = await post(index, '/api/docs/feedback', 3, { page: 'docs/policies', vote: 'up' })
      return { status: response.status, wait: Number(response.headers.get('retry-after')) }
    }
    expect([(await vote(0)).status, (await vote(1)).status]).toEqual([200, 200])
    const refused = await vote(0)
    expect(refused).toEqual({ status: 429, wait: 4 })
    await pause(3_000)
    expect(await vote(1)).toEqual({ status: 429, wait: 4 })
    await pause(4_000)
    expect((await vote(0)).status).toBe(200)
  })
}
