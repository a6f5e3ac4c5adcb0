/** Rate limits as a client sees them. */
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../../journeys/gateway.ts'

let gateway: Gateway
const post = (headers: Record<string, string> = {}) =>
  fetch(`${gateway.origin}/api/nowhere`, { method: 'POST', headers })

describe('the limit of mutations', () => {
  beforeAll(async () => {
    gateway = await startGateway({ CHAIN: 'simulated', RATE_MUTATIONS: '3/60' })
  })
  afterAll(() => gateway?.stop())

  it('is reported in every answer, then is 429 with the time to wait, whatever X-Forwarded-For contains', async () => {
    const answers: Response[] = []
    for (let count = 0; count < 4; count += 1)
      answers.push(await post({ 'x-forwarded-for': `203.0.113.${count}` }))
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 429])
    for (const [at, { headers }] of answers.entries()) {
      expect(headers.get('ratelimit-policy')).toBe('"mutations";q=3;w=60')
      expect(headers.get('ratelimit')).toMatch(new RegExp(`^"mutations";r=${Math.max(2 - at, 0)};t=\\d+$`))
    }
    const [, , , refused] = answers
    const wait = Number(refused?.headers.get('retry-after'))
    expect(wait).toBeGreaterThan(0)
    expect(wait).toBeLessThanOrEqual(60)
    expect(await refused?.json()).toMatchObject({ code: 'rate_limited', retryAfter: wait })
  })

  it('applies on every path, before authentication, and not to reads', async () => {
    for (const path of ['/mcp', '/api/wallets/transfer', '/api/auth/guest']) {
      const response = await fetch(`${gateway.origin}${path}`, {
        method: 'POST',
        headers: { authorization: 'Bearer bsk_sandbox_x' },
      })
      expect([path, response.status]).toEqual([path, 429])
    }
    const read = await fetch(`${gateway.origin}/healthz`)
    expect([read.status, read.headers.get('ratelimit')]).toEqual([200, null])
  })

  it('holds for webhooks without a signature or with a wrong one, and never for a provider', async () => {
    const { lithicWebhookSecret } = JSON.parse(
      await (await fetch(`${gateway.origin}/sandbox/credentials`)).text(),
    )
    const body = JSON.stringify({ event_type: 'card.created', token: 'x' })
    const readStatus = async (headers: Record<string, string>) => {
      const sent = { 'content-type': 'application/json', ...headers }
      return (await fetch(`${gateway.origin}/api/webhooks/lithic`, { method: 'POST', headers: sent, body }))
        .status
    }
    const signHeaders = (id: string, secret: string, at = new Date()) => ({
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Webhook(secret).sign(id, at, body),
    })
    expect(await readStatus({})).toBe(429)
    expect(await readStatus(signHeaders('msg_1', `whsec_${Buffer.alloc(24, 7).toString('base64')}`))).toBe(
      429,
    )
    for (let count = 0; count < 5; count += 1)
      expect(await readStatus(signHeaders(`msg_signed_${count}`, lithicWebhookSecret))).toBe(200)
  })

  it('does not apply to unpaid requests for a price', async () => {
    const prices = await Promise.all(
      Array.from({ length: 400 }, async () => {
        const response = await fetch(`${gateway.origin}/api/x402/fx?from=USD&to=EUR&amount=100`)
        await response.arrayBuffer()
        return response.status
      }),
    )
    expect(new Set(prices)).toEqual(new Set([402]))
  })
})

describe('the limit behind a trusted proxy', () => {
  beforeAll(async () => {
    gateway = await startGateway({
      CHAIN: 'simulated',
      RATE_MUTATIONS: '1/60',
      TRUSTED_PROXIES: '127.0.0.0/8',
    })
  })
  afterAll(() => gateway?.stop())

  it('counts each client that the proxy names, IPv6 by its /64', async () => {
    const statusFor = async (client: string) => (await post({ 'x-forwarded-for': client })).status
    expect(await statusFor('203.0.113.1')).toBe(404)
    expect(await statusFor('203.0.113.2')).toBe(404)
    expect(await statusFor('203.0.113.1')).toBe(429)
    expect(await statusFor('9.9.9.9, 203.0.113.1')).toBe(429)
    expect(await statusFor('2001:db8::1')).toBe(404)
    expect(await statusFor('2001:db8::2')).toBe(429)
    expect(await statusFor('2001:db8:0:1::1')).toBe(404)
  })
})
