/**
 * A Redis that is disconnected, hangs or is lost: public reads continue, whatever moves money is 503, and the gateway
 * recovers by itself.
 */
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { expectUnavailable, sendJson } from './ask.ts'
import { startTcpProxy, type TcpProxy, through } from './tcp-proxy.ts'
import { type Client, createClient } from './transfers.ts'

const redisUrl = process.env.TEST_REDIS_URL
/** Well above the time limit of one command, and far below a client's patience. */
const SOON_MS = 5_000

describe.skipIf(redisUrl === undefined)('a gateway whose Redis', () => {
  let proxy: TcpProxy
  let gateway: Gateway
  let client: Client
  let sent = 0

  beforeAll(async () => {
    const url = new URL(redisUrl ?? '')
    // A Redis database of this file's own, which no journey uses.
    url.pathname = '/15'
    const redis = new Redis(url.href)
    await redis.flushdb()
    await redis.quit()
    proxy = await startTcpProxy(Number(url.port || 6379), url.hostname)
    gateway = await startGateway({
      REDIS_URL: through(proxy, url.href),
      CHAIN: 'simulated',
      LOG_LEVEL: 'silent',
      RATE_MUTATIONS: '100000/60',
    })
    client = await createClient(gateway.origin)
    sent += (await client.transfer('1', 'before')).status === 200 ? 1 : 0
  }, 60_000)
  afterAll(async () => {
    proxy?.pass()
    await gateway?.stop()
    await proxy?.close()
  })
  afterEach(async () => {
    proxy.pass()
    await expect
      .poll(async () => (await sendJson(`${gateway.origin}/readyz`)).status, { timeout: 15_000 })
      .toBe(200)
    sent += 1
    expect((await client.transferUntilFinal('1', `after-${sent}`)).status).toBe(200)
    expect(await client.usdc()).toEqual({ amount: String(1000 - sent), held: '0' })
  }, 30_000)

  const expectClosedForMoney = async (name: string) => {
    const closed = await Promise.all([
      ...Array.from({ length: 20 }, (_, index) => client.transfer('1', `${name}-${index}`)),
      client.post('/api/cards', { nickname: 'No' }, `${name}-card`),
      sendJson(`${gateway.origin}/api/x402/fx?from=USD&to=EUR&amount=1`, {
        headers: { 'x-payment': Buffer.from('{}').toString('base64') },
      }),
      sendJson(`${gateway.origin}/api/auth/guest`, { method: 'POST' }),
    ])
    for (const answer of closed) {
      expectUnavailable(answer, 'provider_unavailable')
      expect(answer.ms).toBeLessThan(SOON_MS)
    }
    const open = await Promise.all([
      sendJson(`${gateway.origin}/api/rails`),
      sendJson(`${gateway.origin}/api/x402/fx?from=USD&to=EUR&amount=1`),
      client.get('/api/wallets'),
      sendJson(`${gateway.origin}/healthz`),
    ])
    expect(open.map(({ status }) => status)).toEqual([200, 402, 200, 200])
    for (const { ms } of open) expect(ms).toBeLessThan(SOON_MS)
    const ready = await sendJson(`${gateway.origin}/readyz`)
    expect([ready.status, z.looseObject({}).parse(ready.body.checks).rateLimits]).toEqual([
      503,
      'unavailable',
    ])
    expect(await client.usdc()).toEqual({ amount: String(1000 - sent), held: '0' })
  }

  it('is disconnected permits no spend until it is back', async () => {
    proxy.refuse()
    await expectClosedForMoney('cut')
  })

  it('hangs permits no spend until it resumes', async () => {
    proxy.hold()
    await expectClosedForMoney('hung')
  })

  it('is lost on its connection opens a new one', async () => {
    proxy.forget()
    const answer = await client.transfer('1', 'forgotten')
    expectUnavailable(answer, 'provider_unavailable')
    expect(answer.ms).toBeLessThan(SOON_MS)
  })
})
