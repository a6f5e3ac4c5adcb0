/** Security headers on every kind of answer. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Gateway, startGateway } from '../../journeys/gateway.ts'

let gateway: Gateway
let secured: Gateway
let securedPort: number
let key: string
beforeAll(async () => {
  gateway = await startGateway({ CHAIN: 'simulated' })
  securedPort = await freePort()
  secured = await startGateway({
    CHAIN: 'simulated',
    PUBLIC_ORIGIN: 'https://bursar.example',
    PORT: String(securedPort),
  })
  const read = await (await fetch(`${gateway.origin}/sandbox/credentials`)).json()
  key = z.object({ demoApiKey: z.string() }).parse(read).demoApiKey
})
afterAll(async () => {
  await gateway?.stop()
  await secured?.stop()
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  // A listening server has an address object with a port.
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

const bearer = () => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' })

interface Kind {
  readonly kind: string
  readonly path: string
  readonly status: number
  readonly init?: () => RequestInit
}

/** One answer of every kind, with the status that identifies it. */
const kinds: readonly Kind[] = [
  { kind: 'an answer', path: '/api/rails', status: 200 },
  { kind: 'an answer with a key', path: '/api/wallets', status: 200, init: () => ({ headers: bearer() }) },
  { kind: 'a refusal', path: '/api/wallets', status: 401 },
  { kind: 'a credential in the query', path: '/api/wallets?token=x', status: 400 },
  { kind: 'nothing', path: '/nowhere', status: 404 },
  { kind: 'another method', path: '/api/rails', status: 405, init: () => ({ method: 'DELETE' }) },
  {
    kind: 'an invalid body',
    path: '/api/auth/guest',
    status: 400,
    init: () => ({ method: 'POST', headers: bearer(), body: '{' }),
  },
  { kind: 'a challenge', path: '/api/x402/fx?from=USD&to=EUR&amount=1', status: 402 },
  { kind: 'a page', path: '/sign-in', status: 200, init: () => ({ headers: { via: 'a proxy' } }) },
  { kind: 'the documentation', path: '/docs', status: 200 },
  { kind: 'the errors', path: '/errors', status: 200 },
  { kind: 'one error', path: '/errors/internal', status: 200 },
  { kind: 'a script', path: '/assets/docs.js', status: 200 },
  { kind: 'a stylesheet', path: '/assets/docs.css', status: 200 },
  { kind: 'the description', path: '/api/openapi.json', status: 200 },
  { kind: 'keys', path: '/.well-known/jwks.json', status: 200 },
  {
    kind: 'the authorization server’s metadata',
    path: '/.well-known/oauth-authorization-server/oauth',
    status: 200,
  },
  { kind: 'an OAuth refusal', path: '/oauth/token', status: 400, init: () => ({ method: 'POST' }) },
  { kind: 'a redirect to an OAuth page', path: '/oauth/authorize?client_id=nobody', status: 302 },
  {
    kind: 'MCP',
    path: '/mcp',
    status: 401,
    init: () => ({ method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }),
  },
  {
    kind: 'a webhook',
    path: '/api/webhooks/lithic',
    status: 401,
    init: () => ({ method: 'POST', body: '{}' }),
  },
  { kind: 'health', path: '/healthz', status: 200 },
  { kind: 'metrics', path: '/metrics', status: 200 },
]

describe('the security headers', () => {
  it.each(kinds)('are set on $kind', async ({ path, status, init = () => ({}) }) => {
    const response = await fetch(`${gateway.origin}${path}`, { redirect: 'manual', ...init() })
    const get = (name: string) => response.headers.get(name)
    expect([path, response.status]).toEqual([path, status])
    expect(get('x-content-type-options')).toBe('nosniff')
    expect(get('x-frame-options')).toBe('DENY')
    expect(get('referrer-policy')).toBe('no-referrer')
    expect(get('permissions-policy')).toContain('camera=()')
    expect(get('cross-origin-resource-policy')).toBe('same-origin')
    const policy = get('content-security-policy') ?? ''
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).toContain("base-uri 'none'")
    expect(policy).not.toMatch(/unsafe-eval|script-src[^;]*(unsafe-inline|https?:|\*)/)
    const isPage = get('content-type')?.startsWith('text/html') === true
    if (!isPage && !path.includes('/oauth')) expect(policy).toContain("default-src 'none'")
    // Pages that clients open in a new window keep their opener; no other page has one.
    expect(get('cross-origin-opener-policy')).toBe(/^\/(oauth|sign-in)/.test(path) ? null : 'same-origin')
    expect(get('strict-transport-security')).toBeNull()
    expect(get('x-powered-by')).toBeNull()
    expect(get('server')).toBeNull()
  })

  it.each(kinds)('require https if the origin is https, on $kind', async ({ path, init = () => ({}) }) => {
    const response = await fetch(`http://127.0.0.1:${securedPort}${path}`, { redirect: 'manual', ...init() })
    expect(response.headers.get('strict-transport-security')).toBe('max-age=31536000')
  })
})
