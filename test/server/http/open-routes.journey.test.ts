/** Routes without authentication, called with invalid credentials, and without the store of the rate limits. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Gateway, startGateway } from '../../journeys/gateway.ts'

const json = { 'content-type': 'application/json' }
const forged = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhY2N0XzEifQ.AAAA'
const fx = '/api/x402/fx?from=USD&to=EUR&amount=100'
const readCode = async (response: Response) =>
  z.object({ code: z.string() }).parse(await response.json()).code

describe('an open route', () => {
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await startGateway({ CHAIN: 'simulated' })
  })
  afterAll(() => gateway?.stop())
  const guest = (headers: Record<string, string>) =>
    fetch(`${gateway.origin}/api/auth/guest`, {
      method: 'POST',
      headers: { ...json, ...headers },
      body: '{}',
    })

  it('accepts a request with an invalid credential', async () => {
    for (const headers of [
      { authorization: `Bearer ${forged}` },
      { authorization: 'Basic eDp5' },
      { authorization: 'Bearer bsk_sandbox_x' },
    ])
      expect((await fetch(`${gateway.origin}${fx}`, { headers })).status).toBe(402)
    expect((await guest({ cookie: `bursar_session=${forged}` })).status).toBe(200)
  })

  it('lets a browser with an ended session sign in again; other routes report the ended session', async () => {
    const cookie = `bursar_session=${forged}`
    expect((await guest({ cookie, origin: gateway.origin })).status).toBe(200)
    const response = await fetch(`${gateway.origin}/api/wallets`, { headers: { cookie } })
    expect([response.status, await readCode(response)]).toEqual([401, 'unauthenticated'])
  })

  it('rejects two session cookies as two credentials, on every route', async () => {
    const response = await guest({ cookie: `bursar_session=${forged}; bursar_session=other` })
    expect([response.status, await readCode(response)]).toEqual([400, 'ambiguous_credentials'])
  })

  it('rejects an encoded body', async () => {
    const response = await guest({ 'content-encoding': 'gzip' })
    expect([response.status, await readCode(response)]).toEqual([415, 'unsupported_media_type'])
  })

  it('reports the rate limit of /mcp, and none on a challenge, which everyone gets', async () => {
    expect((await fetch(`${gateway.origin}${fx}`)).headers.get('ratelimit')).toBeNull()
    const response = await fetch(`${gateway.origin}/mcp`, { method: 'POST', headers: json, body: '{}' })
    expect(response.headers.get('ratelimit-policy')).toBe('"mutations";q=150;w=60')
  })
})

describe('a gateway that cannot reach the store of its limits', () => {
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await startGateway({
      CHAIN: 'simulated',
      REDIS_URL: 'redis://127.0.0.1:9',
      LOG_LEVEL: 'silent',
    })
  })
  afterAll(() => gateway?.stop())

  it('serves public reads', async () => {
    expect((await fetch(`${gateway.origin}${fx}`)).status).toBe(402)
    expect((await fetch(`${gateway.origin}/healthz`)).status).toBe(200)
  })

  it('accepts no payment, makes no change, and is not ready', async () => {
    const paid = await fetch(`${gateway.origin}${fx}`, { headers: { 'x-payment': 'e30=' } })
    const changed = await fetch(`${gateway.origin}/api/auth/guest`, {
      method: 'POST',
      headers: json,
      body: '{}',
    })
    for (const response of [paid, changed]) {
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
      expect([response.status, await readCode(response)]).toEqual([503, 'provider_unavailable'])
    }
    const ready = await fetch(`${gateway.origin}/readyz`)
    expect([ready.status, await ready.json()]).toMatchObject([
      503,
      { checks: { rateLimits: 'unavailable', database: 'ok' } },
    ])
  })
})
