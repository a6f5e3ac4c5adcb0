/** Headers and behaviour common to all HTTP answers: the built gateway, real sockets. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Gateway, startGateway } from '../../journeys/gateway.ts'

let gateway: Gateway
let demoApiKey: string
beforeAll(async () => {
  gateway = await startGateway({ CHAIN: 'simulated', RATE_MUTATIONS: '100000/60' })
  const read = await (await fetch(`${gateway.origin}/sandbox/credentials`)).json()
  demoApiKey = z.object({ demoApiKey: z.string() }).parse(read).demoApiKey
})
afterAll(() => gateway?.stop())

const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(`${gateway.origin}${path}`, { method, headers })
const readCode = async (response: Response) =>
  z.object({ code: z.string() }).parse(await response.json()).code

/** The gateway's answer to these bytes. */
async function raw(text: string): Promise<string> {
  const socket = connect(Number(new URL(gateway.origin).port), '127.0.0.1')
  let answer = ''
  socket.setEncoding('utf8').on('data', (part: string) => {
    answer += part
  })
  socket.on('error', () => undefined)
  socket.write(text)
  await once(socket, 'close')
  return answer
}

describe('every answer', () => {
  it('carries the request id of the request, or a new one', async () => {
    for (const given of ['abc', 'A.b_c-9', 'x'.repeat(128)])
      expect((await get('/healthz', { 'x-request-id': given })).headers.get('x-request-id')).toBe(given)
    for (const given of ['', 'a b', 'x'.repeat(129), 'é', '<script>', 'a,b'])
      expect((await get('/healthz', { 'x-request-id': given })).headers.get('x-request-id')).toMatch(
        /^req_[0-9a-z]{26}$/,
      )
    const missing = await get('/nowhere', { 'x-request-id': 'lost' })
    expect(missing.headers.get('x-request-id')).toBe('lost')
    expect(await missing.json()).toMatchObject({ requestId: 'lost', instance: '/nowhere' })
  })

  it('is not cacheable, except the API description', async () => {
    for (const path of [
      '/api/wallets',
      '/api/nowhere',
      '/sandbox/credentials',
      '/api/x402/fx?from=USD&to=EUR&amount=1',
    ])
      expect((await get(path)).headers.get('cache-control')).toBe('no-store')
    expect((await get('/api/openapi.json')).headers.get('cache-control')).toBe('public, max-age=300')
    expect((await get('/api/wallets')).headers.get('x-content-type-options')).toBe('nosniff')
  })

  it('has the headers of GET and no body for HEAD', async () => {
    for (const path of [
      '/api/openapi.json',
      '/healthz',
      '/sandbox/credentials',
      '/api/wallets',
      '/api/nowhere',
    ]) {
      const [head, whole] = await Promise.all([get(path, {}, 'HEAD'), get(path)])
      expect([path, head.status]).toEqual([path, whole.status])
      expect(head.headers.get('content-type')).toBe(whole.headers.get('content-type'))
      expect(await head.text()).toBe('')
    }
  })

  it('lists the path’s methods when the method is not allowed', async () => {
    for (const [path, method, allow] of [
      ['/api/wallets', 'POST', 'GET'],
      ['/api/wallets/transfer', 'GET', 'POST'],
      ['/api/openapi.json', 'DELETE', 'GET'],
      ['/healthz', 'PUT', 'GET'],
    ] as const) {
      const response = await get(path, {}, method)
      expect([path, response.status, response.headers.get('allow')]).toEqual([path, 405, allow])
      expect(await readCode(response)).toBe('method_not_allowed')
    }
    const mcp = await get('/mcp', { authorization: `Bearer ${demoApiKey}` })
    expect([mcp.status, mcp.headers.get('allow')]).toEqual([405, 'POST'])
  })

  it('names the authentication schemes when a credential is missing', async () => {
    const response = await get('/api/wallets')
    expect(response.status).toBe(401)
    expect(response.headers.get('www-authenticate')).toMatch(/^Bearer /)
    expect(response.headers.get('accept-signature')).toContain('tag="bursar"')
  })

  it('is a problem for odd paths and queries, never an internal error', async () => {
    for (const path of [
      '/%',
      '/%E0%A4%A',
      '/api/%2e%2e/wallets',
      '//evil.example/',
      '/api/x402/fx?from=%E0%A4%A&to=EUR&amount=1',
      '/api/x402/fx?from=USD&from=EUR&to=EUR&amount=1',
      '/api/x402/fx?__proto__=1&from=USD',
      '/api/x402/fx?from=%00&to=EUR&amount=1',
      '/api/x402/fx?constructor=1&from=USD&to=EUR&amount=1',
      `/${'x'.repeat(5000)}`,
    ]) {
      const response = await get(path)
      expect([path.slice(0, 60), response.status]).toEqual([
        path.slice(0, 60),
        path.includes('fx?') ? 400 : 404,
      ])
      expect(response.headers.get('content-type')).toBe('application/problem+json')
    }
    expect(gateway.output()).not.toContain('unexpected error')
  })

  it('is no internal error for an absolute target or another Host', async () => {
    const close = 'Connection: close\r\n\r\n'
    for (const request of [
      `GET http://evil.example/api/wallets HTTP/1.1\r\nHost: evil.example\r\nSignature: a=:AAAA:\r\nSignature-Input: a=("@path")\r\n${close}`,
      `GET /api/wallets HTTP/1.1\r\nHost: evil.example\r\n${close}`,
      `OPTIONS * HTTP/1.1\r\nHost: x\r\n${close}`,
      `GET /api/wallets HTTP/1.0\r\n\r\n`,
    ]) {
      const [line] = (await raw(request)).split('\r\n')
      expect(line).toMatch(/^HTTP\/1\.1 4\d\d /)
    }
    expect(gateway.output()).not.toContain('unexpected error')
  })
})

describe('a body that is too long', () => {
  it('is rejected by its declared length before it arrives', async () => {
    const answer = await raw(
      'POST /api/auth/guest HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 65537\r\nConnection: close\r\n\r\n',
    )
    expect(answer).toMatch(/^HTTP\/1\.1 413 /)
    expect(answer).toContain('body_too_large')
  })

  it('is rejected in chunks as soon as it is too long', async () => {
    const chunk = `8000\r\n${'x'.repeat(0x8000)}\r\n`
    const answer = await raw(
      `POST /api/auth/guest HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n${chunk}${chunk}${chunk}0\r\n\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1\.1 413 /)
    expect(answer).toContain('body_too_large')
  })

  it('is rejected only above 64 KiB', async () => {
    const body = `{}${' '.repeat(64 * 1024 - 2)}`
    const send = (text: string) =>
      fetch(`${gateway.origin}/api/auth/guest`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: text,
      })
    expect((await send(body)).status).toBe(200)
    expect((await send(`${body} `)).status).toBe(413)
  })

  it('is not read for GET', async () => {
    const answer = await raw(
      'GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
    )
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
  })
})

describe('a session cookie', () => {
  it('is HttpOnly and SameSite, and authenticates like the token', async () => {
    const guest = await fetch(`${gateway.origin}/api/auth/guest`, { method: 'POST' })
    const [line = ''] = guest.headers.getSetCookie()
    expect(line.split('; ').slice(1).sort()).toEqual(['HttpOnly', 'Max-Age=900', 'Path=/', 'SameSite=Lax'])
    const cookie = line.split(';')[0] ?? ''
    expect(cookie).toMatch(/^bursar_session=eyJ/)
    expect(await (await get('/api/agents/self', { cookie })).json()).toMatchObject({ principal: 'session' })
    const both = await get('/api/agents/self', { cookie, authorization: `Bearer ${demoApiKey}` })
    expect(await readCode(both)).toBe('ambiguous_credentials')
    const foreign = await get('/api/agents/self', {
      cookie: cookie.replace('bursar_session', '__Host-bursar_session'),
    })
    expect(foreign.status).toBe(401)
  })
})

describe('an Authorization header', () => {
  it.each(['Basic YTpi', 'Bearer', 'Bearer ', 'bsk_sandbox_x', 'Bearer a b', 'Bearer a,b'])(
    'is rejected as %j',
    async (authorization) => {
      expect(await readCode(await get('/api/wallets', { authorization }))).toBe('unauthenticated')
    },
  )

  it('may have its scheme in any case', async () => {
    expect((await get('/api/wallets', { authorization: `bEARER ${demoApiKey}` })).status).toBe(200)
  })
})

it('counts feedback on pages of the documentation that exist, and on no others', async () => {
  const vote = async (page: string) => {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ page, vote: 'up' })
    const response = await fetch(`${gateway.origin}/api/docs/feedback`, { method: 'POST', headers, body })
    const answer = z
      .looseObject({ code: z.string().optional(), up: z.int().optional() })
      .parse(await response.json())
    return [page, response.status, answer.code ?? answer.up]
  }
  for (const page of [
    'docs/made-up',
    'docs/quick-start/more',
    'docs/reference/wallets/made-up',
    'errors/made_up',
    'made-up',
  ])
    expect(await vote(page)).toEqual([page, 404, 'not_found'])
  for (const page of [
    'docs',
    'docs/quick-start',
    '/docs/reference/wallets',
    'docs/reference/wallets/wallets-transfer',
    'errors/not_found',
  ])
    expect(await vote(page)).toEqual([page, 200, 1])
  expect(await vote('docs?x')).toEqual(['docs?x', 404, 'not_found'])
  expect(await vote('/docs')).toEqual(['/docs', 200, 2])
})
