/** The served sign-in page: its headers, its assets, and its variants by deployment. */

import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import type { Principal } from '../../../../src/core/base/principal.ts'
import type { Settings } from '../../../../src/kernel/context.ts'
import type { IdentityProvider } from '../../../../src/providers/identity-provider/port.ts'
import type { Channel } from '../../../../src/providers/messages/port.ts'
import { routePages } from '../../../../src/server/http/pages/routes.tsx'
import type { Env } from '../../../../src/server/http/request.ts'
import { sharedGateway } from '../../../journeys/gateway.ts'
import { origin, sandboxSettings } from '../../../kernel/scene.ts'

describe('the sign-in page', () => {
  const gateway = { origin: sharedGateway() }
  const get = (path: string, init: RequestInit = {}) =>
    fetch(`http://localhost:${new URL(gateway.origin).port}${path}`, { redirect: 'manual', ...init })

  it('loads nothing from elsewhere, is never framed or stored, and leaks no referrer', async () => {
    const { headers, status } = await get('/sign-in', { headers: { 'x-request-id': 'page-1' } })
    expect(status).toBe(200)
    expect(headers.get('content-type')).toMatch(/^text\/html; charset=utf-8/i)
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    )
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('x-request-id')).toBe('page-1')
  })

  it('loads two stylesheets, two scripts and the WebAuthn library, all from our origin', async () => {
    const text = await (await get('/sign-in')).text()
    expect(text).toMatch(/^<!doctype html><html lang="en">/)
    const loaded = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path ?? '')
    expect(loaded.filter((path) => !path.startsWith('/'))).toEqual([])
    const assets = loaded.filter((path) => path.startsWith('/assets/'))
    expect(assets).toHaveLength(5)
    const modules = ['api', 'elements', 'attempts', 'codes', 'passkeys', 'providers', 'recovery', 'next'].map(
      (name) => `/assets/${name}.js`,
    )
    for (const path of [...assets, ...modules]) {
      const response = await get(path)
      expect([path, response.status]).toEqual([path, 200])
      expect(response.headers.get('content-type')).toMatch(/^text\/(css|javascript); charset=utf-8$/)
      expect((await response.text()).length).toBeGreaterThan(80)
    }
  })

  it('imports no module that is not served', async () => {
    const known = new Set(['sign-in.js'])
    for (const module of known) {
      const response = await get(`/assets/${module}`)
      expect([module, response.status]).toEqual([module, 200])
      for (const [, name = ''] of (await response.text()).matchAll(/from ['"]\.\/([\w-]+\.js)['"]/g))
        known.add(name)
    }
    expect(known.size).toBeGreaterThan(8)
  })

  it('is routed like any other path', async () => {
    for (const path of ['/sign-in', '/assets/sign-in.js']) {
      const other = await get(path, { method: 'POST' })
      expect([other.status, other.headers.get('allow')]).toEqual([405, 'GET'])
      expect((await get(path, { method: 'HEAD' })).status).toBe(200)
    }
    const leaking = await get('/sign-in?token=x')
    expect([leaking.status, await leaking.json()]).toMatchObject([400, { code: 'credential_in_query' }])
    for (const path of ['/assets/nothing.js', '/sign-in/nobody', '/sign-in/__proto__'])
      expect((await get(path)).status).toBe(404)
    // An encoded slash is rejected: decoders disagree on its meaning.
    expect((await get('/assets/..%2fapp.js')).status).toBe(400)
  })

  it('leads a signed-in visitor to the console, or to the page of ours that asked', async () => {
    const guest = await get('/api/auth/guest', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    const [cookie = ''] = (guest.headers.get('set-cookie') ?? '').split(';')
    const follow = async (search: string) => {
      const { status, headers } = await get(`/sign-in${search}`, { headers: { cookie } })
      return [status, headers.get('location')]
    }
    expect(await follow('')).toEqual([302, '/'])
    const own = '/activity?kind=card&agentId=key_1'
    expect(await follow(`?next=${encodeURIComponent(own)}`)).toEqual([302, own])
    for (const evil of ['//evil.example', '/\\evil.example', 'https://evil.example', '/%5Cevil.example'])
      expect([evil, ...(await follow(`?next=${encodeURIComponent(evil)}`))]).toEqual([evil, 302, '/'])
    expect(await (await get('/sign-in')).text()).toContain('data-page="sign-in"')
  })

  it('explains why a session is invalid, and clears its cookie', async () => {
    const refused = await get('/sign-in', { headers: { cookie: 'bursar_session=nothing' } })
    const text = await refused.text()
    expect(text).toContain('Please sign in again.')
    expect(text).toContain('data-page="sign-in"')
    expect(refused.headers.get('set-cookie')).toMatch(/^bursar_session=; Max-Age=0; Path=\/; HttpOnly/)
    expect((await get('/sign-in')).headers.get('set-cookie')).toBeNull()
  })

  it('puts no form input into a URL, with or without its script', async () => {
    const text = await (await get('/sign-in')).text()
    const forms = [...text.matchAll(/<form [^>]*>/g)].map(([form]) => form)
    expect(forms.length).toBeGreaterThan(9)
    expect(forms.filter((form) => !form.includes('method="post"'))).toEqual([])
    expect(text).toContain('<noscript>')
  })
})

describe('a deployment’s sign-in page', () => {
  const provider: IdentityProvider = {
    authorizationUrl: () => Promise.reject(new Error('not asked')),
    identify: () => Promise.reject(new Error('not asked')),
  }
  const renderPage = async (
    {
      channels = [],
      providers = [],
      ...settings
    }: { channels?: readonly Channel[]; providers?: readonly string[] } & Partial<
      Pick<Settings, 'mode' | 'guests' | 'webOrigins'>
    >,
    url = `${origin}/sign-in`,
    headers: Record<string, string> = {},
  ) => {
    const app = new Hono<Env>()
    const principal: Principal = { kind: 'public' }
    app.use(async (c, next) => {
      c.set('caller', { principal, renewed: null, refusal: null })
      await next()
    })
    routePages(app, {
      settings: { ...production, ...settings },
      messages: { channels, send: () => Promise.reject(new Error('not asked')) },
      identityProviders: new Map(providers.map((name) => [name, provider])),
      chain: { name: 'base-sepolia' },
    })
    return app.request(url, { headers })
  }
  const production: Settings = { ...sandboxSettings, mode: 'production', guests: false }

  it('offers exactly the available sign-in methods', async () => {
    const bare = await (await renderPage({})).text()
    expect(bare).toContain('Sign in with a passkey')
    for (const absent of ['one-time code', 'Continue with', 'guest', 'outbox'])
      expect(bare).not.toContain(absent)
    const rich = await (
      await renderPage({
        mode: 'sandbox',
        guests: true,
        channels: ['email', 'sms'],
        providers: ['google', 'apple'],
      })
    ).text()
    for (const present of [
      'E-mail',
      'Phone',
      'Continue with Google',
      'Continue with Apple',
      'guest',
      'outbox',
    ])
      expect(rich).toContain(present)
  })

  it('mentions no unavailable channel', async () => {
    const mail = await (await renderPage({ channels: ['email'] })).text()
    expect(mail).toContain('E-mail address')
    expect(mail).not.toMatch(/phone/i)
    const phone = await (await renderPage({ channels: ['sms'] })).text()
    expect(phone).toContain('Phone number')
    expect(phone).toMatch(/takes over a number can read its\s+messages:\s+a passkey is safer/)
    expect(phone).not.toMatch(/e-mail/i)
    expect(await (await renderPage({})).text()).toContain('Recover with a passkey')
  })

  it('has a callback page for each provider', async () => {
    const response = await renderPage({ providers: ['google'] }, `${origin}/sign-in/google?code=a&state=b`)
    expect(response.headers.get('referrer-policy')).toBe('no-referrer')
    const text = await response.text()
    expect(text).toContain('data-provider="google"')
    expect(text).not.toContain('code=a')
  })

  it('stays on its address behind a proxy, and at a real domain', async () => {
    const local = { webOrigins: ['http://localhost:8787', 'http://127.0.0.1:8787'] }
    const at = 'http://127.0.0.1:8787/sign-in'
    expect((await renderPage(local, at)).status).toBe(302)
    for (const name of ['x-forwarded-for', 'x-forwarded-host', 'forwarded', 'via'])
      expect((await renderPage(local, at, { [name]: 'x' })).status).toBe(200)
    expect((await renderPage({}, at)).status).toBe(200)
    expect((await renderPage({ webOrigins: ['http://localhost'] }, at)).status).toBe(200)
  })
})
