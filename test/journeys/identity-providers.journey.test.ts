/** Sign-in with Google and Apple through the sandbox's own OpenID provider, over HTTP, using its form. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { type Browser, newBrowser } from './browser.ts'
import { forManyTests, type Gateway, sharedGateway, startGateway } from './gateway.ts'

const started = z.strictObject({ authorizationUrl: z.url(), state: z.string() })
const session = z.strictObject({
  personId: z.string(),
  role: z.literal('owner'),
  account: z.looseObject({ id: z.string(), displayName: z.string(), guest: z.boolean() }),
  sessionToken: z.string(),
  expiresAt: z.string(),
})
const ada = { email: 'ada@example.com', name: 'Ada Lovelace', action: 'sign-in' }

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}

const worlds = [
  { name: 'embedded parts', isReal: false, isThere: true },
  { name: 'PostgreSQL', isReal: true, isThere: testServerUrl !== undefined },
]

describe.each(worlds)('identity providers on $name', ({ isReal, isThere }) => {
  describe.runIf(isThere)('', () => {
    let origin: string
    const gateways: Gateway[] = []
    let neighbourOrigin: string
    let dropDatabase = async () => {}

    beforeAll(async () => {
      if (!isReal) {
        origin = sharedGateway()
        return
      }
      const database = await createTestDatabase(testServerUrl ?? '')
      dropDatabase = database.drop
      const env = { ...forManyTests, CHAIN: 'simulated', DATABASE_URL: database.url }
      const gateway = await startGateway(env)
      gateways.push(gateway)
      origin = gateway.origin
      // A second gateway of the same deployment, under the same origin.
      const port = await freePort()
      neighbourOrigin = `http://127.0.0.1:${port}`
      gateways.push(await startGateway({ ...env, PUBLIC_ORIGIN: origin, PORT: String(port) }))
    })
    afterAll(async () => {
      await Promise.all(gateways.map((gateway) => gateway.stop()))
      await dropDatabase()
    })

    const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
      fetch(`${origin}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      })
    const begin = async (name: string) => started.parse(await (await post(`/api/auth/${name}`, {})).json())
    const isSignInPage = ({ pathname }: URL) => pathname.startsWith('/sign-in/')
    const openForm = async (browser: Browser, name: string) => {
      const { authorizationUrl, state } = await begin(name)
      const { url, response } = await browser.visit(authorizationUrl)
      return { url, state, page: (await response?.text()) ?? '', response }
    }
    const returnFrom = async (name: string, form: Record<string, string> = ada) => {
      const browser = newBrowser(isSignInPage)
      const { url, state } = await openForm(browser, name)
      const back = await browser.visit(url.href, form)
      const { code, state: returned, iss, error } = Object.fromEntries(back.url.searchParams)
      return { back: back.url, sentState: state, state: returned, code, iss, error }
    }
    const signIn = async (name: string, form: Record<string, string> = ada) => {
      const { code, state } = await returnFrom(name, form)
      return session.parse(await (await post(`/api/auth/${name}`, { code, state })).json())
    }
    const readCode = async (response: Response) =>
      z.object({ code: z.string() }).parse(await response.json()).code

    it.each(['google', 'apple'])('sign a person in with %s, with a wallet', async (name) => {
      const browser = newBrowser(isSignInPage)
      const { url, state, page, response } = await openForm(browser, name)
      expect(page).toContain('Sandbox identity provider')
      expect(response?.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
      const { url: back } = await browser.visit(url.href, ada)
      expect([back.hostname, back.pathname]).toEqual(['localhost', `/sign-in/${name}`])
      expect(back.searchParams.get('state')).toBe(state)
      const answer = await post(`/api/auth/${name}`, {
        code: back.searchParams.get('code'),
        state,
        iss: back.searchParams.get('iss'),
      })
      expect(answer.headers.get('set-cookie')).toMatch(/^bursar_session=.+HttpOnly/)
      const { account, sessionToken } = session.parse(await answer.json())
      expect(account).toMatchObject({ displayName: 'Ada Lovelace', guest: false })
      const wallet = await fetch(`${origin}/api/wallets`, {
        headers: { authorization: `Bearer ${sessionToken}` },
      })
      expect(wallet.status).toBe(200)
      expect(await wallet.json()).toMatchObject({ safeAddress: expect.stringMatching(/^0x/) })
    })

    it('set no cookie in the first step', async () => {
      const answer = await post('/api/auth/google', {})
      expect([answer.status, answer.headers.get('set-cookie')]).toEqual([200, null])
    })

    it('lead to the same account at the next sign-in, and to another one with another provider', async () => {
      const first = await signIn('google')
      expect((await signIn('google')).account.id).toBe(first.account.id)
      expect((await signIn('google', { ...ada, email: 'ADA@example.com' })).account.id).toBe(first.account.id)
      expect((await signIn('google', { ...ada, email: 'bob@example.com' })).account.id).not.toBe(
        first.account.id,
      )
      expect((await signIn('apple')).account.id).not.toBe(first.account.id)
    })

    it('send a person who cancels back without a code', async () => {
      const { error, state, sentState, code } = await returnFrom('google', { action: 'cancel', email: '' })
      expect({ error, state, code }).toEqual({ error: 'access_denied', state: sentState, code: undefined })
    })

    it('ask again for an invalid e-mail address', async () => {
      const browser = newBrowser(isSignInPage)
      const { url } = await openForm(browser, 'google')
      const { response } = await browser.visit(url.href, { email: '<b>ada', name: '', action: 'sign-in' })
      expect(response?.status).toBe(400)
      expect(await response?.text()).toContain('role="alert"')
      const { url: back } = await browser.visit(url.href, ada)
      expect(isSignInPage(back)).toBe(true)
    })

    it('have each callback accepted once', async () => {
      const { code, state } = await returnFrom('google')
      expect((await post('/api/auth/google', { code, state })).status).toBe(200)
      const again = await post('/api/auth/google', { code, state })
      expect([again.status, await readCode(again)]).toEqual([401, 'unauthenticated'])
    })

    it('reject a code that was spent, or was issued for another sign-in', async () => {
      const { code, state } = await returnFrom('google')
      expect((await post('/api/auth/google', { code, state })).status).toBe(200)
      const fresh = await returnFrom('google')
      const spent = await post('/api/auth/google', { code, state: fresh.state })
      expect([spent.status, await readCode(spent)]).toEqual([401, 'unauthenticated'])
      const [mine, theirs] = [await returnFrom('google'), await returnFrom('google')]
      const injected = await post('/api/auth/google', { code: theirs.code, state: mine.state })
      expect([injected.status, await readCode(injected)]).toEqual([401, 'unauthenticated'])
    })

    it('reject an answer at another provider, and one that names another issuer', async () => {
      const { code, state } = await returnFrom('google')
      expect((await post('/api/auth/apple', { code, state })).status).toBe(401)
      const named = await returnFrom('google')
      const answer = await post('/api/auth/google', {
        code: named.code,
        state: named.state,
        iss: 'https://evil.example',
      })
      expect(answer.status).toBe(401)
    })

    it('reject an incomplete callback', async () => {
      for (const half of [{ code: 'x' }, { state: 'x' }, { iss: 'https://x.example' }]) {
        const response = await post('/api/auth/google', half)
        expect([response.status, await readCode(response)]).toEqual([400, 'invalid_request'])
      }
    })

    it('reject an unknown provider name, without capturing neighbouring routes', async () => {
      expect((await post('/api/auth/nosuch', {})).status).toBe(404)
      expect((await fetch(`${origin}/api/auth/nosuch`)).status).toBe(404)
      const wrong = await fetch(`${origin}/api/auth/google`)
      expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST'])
      const guest = await fetch(`${origin}/api/auth/guest`)
      expect([guest.status, guest.headers.get('allow')]).toEqual([405, 'POST'])
      expect((await post('/api/auth/guest', {})).status).toBe(200)
    })

    it('are both described in OpenAPI', async () => {
      const document = z
        .object({ paths: z.record(z.string(), z.unknown()) })
        .parse(await (await fetch(`${origin}/api/openapi.json`)).json())
      const paths = Object.keys(document.paths).filter((path) => path.startsWith('/api/auth/'))
      expect(paths).toEqual(expect.arrayContaining(['/api/auth/google', '/api/auth/apple']))
      expect(paths.filter((path) => path.includes('{provider}'))).toEqual([])
    })

    it('are strict in the sandbox about PKCE, redirect URIs, clients and methods', async () => {
      const browser = newBrowser(isSignInPage)
      const { authorizationUrl } = await begin('google')
      const tamper = async (change: (query: URLSearchParams) => void) => {
        const url = new URL(authorizationUrl)
        change(url.searchParams)
        return browser.visit(url.href)
      }
      const elsewhere = await tamper((query) => query.set('redirect_uri', 'https://evil.example/cb'))
      expect(elsewhere.response?.status).toBe(400)
      expect(await elsewhere.response?.text()).toContain('Sandbox identity provider')
      expect((await tamper((query) => query.set('client_id', 'nobody'))).response?.status).toBe(400)
      const bare = await tamper((query) => {
        query.delete('code_challenge')
        query.delete('code_challenge_method')
      })
      expect(bare.url.searchParams.get('error')).toBe('invalid_request')
      const ended = await browser.visit(`${origin}/sandbox/openid/interaction/nosuch`)
      expect(ended.response?.status).toBe(400)
      const unknown = await fetch(`${origin}/sandbox/openid/nosuch`)
      expect([unknown.status, unknown.headers.get('cache-control')]).toEqual([404, 'no-store'])
      const token = await fetch(`${origin}/sandbox/openid/token`, {
        method: 'POST',
        headers: { 'x-request-id': 'mine' },
        body: new URLSearchParams({
          grant_type: 'authorization_code',
          client_id: 'bursar-google',
          client_secret: 'guess',
          code: 'x',
        }),
      })
      expect([token.status, token.headers.get('x-request-id')]).toEqual([401, 'mine'])
    })

    it('reject credentials in queries, like every route', async () => {
      const response = await fetch(`${origin}/sandbox/openid/me?access_token=x`)
      expect([response.status, await readCode(response)]).toEqual([400, 'credential_in_query'])
    })

    it('describe themselves by their own origin, regardless of the Host header', async () => {
      const response = await fetch(`${origin}/sandbox/openid/.well-known/openid-configuration`, {
        headers: { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' },
      })
      expect(await response.json()).toMatchObject({
        issuer: `${origin}/sandbox/openid`,
        token_endpoint: `${origin}/sandbox/openid/token`,
        id_token_signing_alg_values_supported: ['EdDSA'],
        code_challenge_methods_supported: ['S256'],
      })
    })

    it.runIf(isReal)('are one provider on all gateways of a database', async () => {
      const browser = newBrowser(isSignInPage)
      const { url, state } = await openForm(browser, 'google')
      const { url: back } = await browser.visit(`${neighbourOrigin}${url.pathname}`, ada)
      expect(back.searchParams.get('state')).toBe(state)
      const answer = await fetch(`${neighbourOrigin}/api/auth/google`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ code: back.searchParams.get('code'), state }),
      })
      expect(session.parse(await answer.json()).account.id).toBe((await signIn('google')).account.id)
    })
  })
})

describe('identity providers behind a proxy', () => {
  it('are called at the gateway’s own address when the public origin is unreachable from it', async () => {
    const port = await freePort()
    const own = `http://127.0.0.1:${port}`
    const gateway = await startGateway({
      CHAIN: 'simulated',
      PORT: String(port),
      PUBLIC_ORIGIN: 'https://bursar.example',
    })
    try {
      const start = () =>
        fetch(`${own}/api/auth/google`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: '{}',
        })
      const { authorizationUrl } = started.parse(await (await start()).json())
      const { origin, pathname, search } = new URL(authorizationUrl)
      expect([origin, pathname]).toEqual(['https://bursar.example', '/sandbox/openid/auth'])
      // Stands in for the proxy.
      const sentState = await fetch(`${own}${pathname}${search}`, { redirect: 'manual' })
      expect(sentState.status).toBe(303)
      expect(sentState.headers.getSetCookie().every((line) => /; secure/i.test(line))).toBe(true)
    } finally {
      await gateway.stop()
    }
  })
})
