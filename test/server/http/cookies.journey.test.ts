/** Sessions in browsers: the cookie, the pages that may use it, and protection against session fixation. */
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { sharedGateway } from '../../journeys/gateway.ts'
import { requestJson } from '../../journeys/people.ts'

const gateway = { origin: sharedGateway() }

const post = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${gateway.origin}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: '{}',
  })
const readAccount = async (cookie: string) => {
  const response = await fetch(`${gateway.origin}/api/auth/session`, { headers: { cookie } })
  return z
    .object({ account: z.object({ id: z.string() }).optional(), sessionToken: z.null().optional() })
    .parse(await response.json()).account?.id
}
const readCookie = (response: Response) => response.headers.getSetCookie()[0]?.split(';')[0] ?? ''
const signIn = async () => readCookie(await post('/api/auth/guest'))
const codeIn = (body: unknown) => z.object({ code: z.string() }).parse(body).code
const outbox = z.object({ messages: z.array(z.object({ destination: z.string(), code: z.string() })) })
const port = () => new URL(gateway.origin).port

describe('the session cookie', () => {
  it('is hidden from scripts and other sites, and expires with its token', async () => {
    const [line = ''] = (await post('/api/auth/guest')).headers.getSetCookie()
    expect(line).toMatch(
      /^bursar_session=eyJ[\w-]+\.[\w-]+\.[\w-]+; Max-Age=900; Path=\/; HttpOnly; SameSite=Lax$/,
    )
  })

  it('survives a sign-in at another gateway of the host, whose cookies a browser sends too', async () => {
    const lines = (await post('/api/auth/guest')).headers.getSetCookie()
    const mine = lines.map((line) => line.split(';')[0] ?? '')
    expect(mine.map((pair) => pair.split('=')[0])).toEqual(
      expect.arrayContaining(['bursar_session', `bursar_session_${port()}`, `bursar_renewal_${port()}`]),
    )
    const own = mine.find((pair) => pair.startsWith(`bursar_session_${port()}=`)) ?? ''
    const others = [
      'bursar_session=eyJhbGciOiJIUzI1NiJ9.e30.other',
      'bursar_session_1=eyJhbGciOiJIUzI1NiJ9.e30.other',
    ]
    expect(await readAccount([...others, own].join('; '))).toBe(await readAccount(own))
    expect(await readAccount(own)).toBeDefined()
    expect(await readAccount(others.join('; '))).toBeUndefined()
  })

  it('is not exposed in the answer to a script that reads the session', async () => {
    const cookie = await signIn()
    const { sessionToken, account } = z
      .looseObject({ sessionToken: z.null(), account: z.looseObject({ guest: z.literal(true) }) })
      .parse(await (await fetch(`${gateway.origin}/api/auth/session`, { headers: { cookie } })).json())
    expect([sessionToken, account.guest]).toEqual([null, true])
  })

  it('is not exposed in the answer to a script that adds an address', async () => {
    const { origin } = gateway
    const codeTo = async (destination: string) => {
      const body = { channel: 'email', destination }
      const { challengeId } = (await requestJson(origin, 'POST', '/api/auth/otp/start', { body })).body
      const { messages } = outbox.parse((await requestJson(origin, 'GET', '/sandbox/outbox')).body)
      return {
        challengeId,
        code: messages.find((message) => message.destination === destination && message.code !== '')?.code,
      }
    }
    const send = async (given: object, headers: Record<string, string> = {}) =>
      fetch(`${origin}/api/auth/otp/verify`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(given),
      })
    const cookie = readCookie(await send(await codeTo('first@example.com')))
    const linked = await send({ ...(await codeTo('second@example.com')), link: true }, { cookie, origin })
    expect([linked.status, await linked.json()]).toMatchObject([200, { sessionToken: null }])
    expect(linked.headers.getSetCookie()).toEqual([])
    expect(await readAccount(cookie)).toBeDefined()
  })

  it('is cleared when its session ends', async () => {
    const cookie = await signIn()
    const out = await post('/api/auth/logout', { cookie, origin: gateway.origin })
    expect(out.headers.getSetCookie()[0]).toMatch(/^bursar_session=; Max-Age=0; Path=\//)
    expect(await readAccount(cookie)).toBeUndefined()
  })
})

describe('a change by cookie', () => {
  it.each([
    ['no origin', () => ({})],
    ['another site', () => ({ origin: 'https://evil.example' })],
    ['a neighbouring port', () => ({ origin: 'http://127.0.0.1:1' })],
    ['another scheme', () => ({ origin: `https://127.0.0.1:${port()}` })],
    ['a sandboxed page', () => ({ origin: 'null' })],
    ['another site, by Sec-Fetch-Site', () => ({ 'sec-fetch-site': 'cross-site' })],
    ['a sister site', () => ({ 'sec-fetch-site': 'same-site' })],
    [
      'an origin that contradicts Sec-Fetch-Site',
      () => ({ origin: 'https://evil.example', 'sec-fetch-site': 'same-origin' }),
    ],
  ])('is rejected from %s', async (_name, headers) => {
    const response = await post('/api/security/lock', { cookie: await signIn(), ...headers() })
    expect([response.status, codeIn(await response.json())]).toEqual([403, 'cross_site_request'])
  })

  it.each([
    ['its own origin', () => ({ origin: gateway.origin })],
    ['its own origin by its other name', () => ({ origin: `http://localhost:${port()}` })],
    ['a same-origin page without an Origin header', () => ({ 'sec-fetch-site': 'same-origin' })],
  ])('is accepted from %s', async (_name, headers) => {
    const response = await post('/api/security/lock', { cookie: await signIn(), ...headers() })
    expect(response.status).toBe(200)
  })

  it('a change that signs out is rejected from another site, and leaves the session and its cookie', async () => {
    const cookie = await signIn()
    const response = await post('/api/auth/logout', { cookie })
    expect([response.status, codeIn(await response.json())]).toEqual([403, 'cross_site_request'])
    expect(response.headers.getSetCookie()).toEqual([])
    expect(await readAccount(cookie)).toBeDefined()
  })

  it('requires JSON', async () => {
    const cookie = await signIn()
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data'])
      expect(
        (await post('/api/security/lock', { cookie, origin: gateway.origin, 'content-type': type })).status,
      ).toBe(415)
    expect(await readAccount(cookie)).toBeDefined()
  })

  it('is rejected with two cookies, in either order', async () => {
    const [mine, planted] = [await signIn(), await signIn()]
    const response = await post('/api/security/lock', {
      cookie: `${planted}; ${mine}`,
      origin: gateway.origin,
    })
    expect([response.status, codeIn(await response.json())]).toEqual([400, 'ambiguous_credentials'])
  })
})

describe('signing in', () => {
  it('cannot be triggered by another site’s page', async () => {
    for (const headers of [
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
      { origin: 'null' },
    ])
      for (const path of ['/api/auth/guest', '/api/auth/logout']) {
        const response = await post(path, headers)
        expect([path, response.status, response.headers.getSetCookie()]).toEqual([path, 403, []])
      }
  })

  it('starts a new session: a planted cookie stays the planter’s', async () => {
    const planted = await signIn()
    const planter = await readAccount(planted)
    const response = await post('/api/auth/guest', { cookie: planted, origin: gateway.origin })
    const mine = readCookie(response)
    expect(mine).not.toBe(planted)
    expect(await readAccount(mine)).not.toBe(planter)
    expect(await readAccount(planted)).toBe(planter)
  })

  it('accepts no session id from the client', async () => {
    const response = await fetch(`${gateway.origin}/api/auth/guest`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"sessionId":"sess_00000000000000000000000000"}',
    })
    expect(response.status).toBe(400)
  })
})
