/** Attacks on the console: framing, forged requests, foreign redirects, stolen links, and the policy of its pages. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { findChromium, giveSession, openBrowser } from './chromium.ts'
import { sharedGateway } from './gateway.ts'
import { newGuest, type Person, requestJson } from './people.ts'

const executable = findChromium()
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

const paths = [
  '/',
  '/agents',
  '/agents/new',
  '/agents/key_01h455vb4pex5vsknk084sn02q',
  '/approvals',
  '/approvals/appr_01h455vb4pex5vsknk084sn02q',
  '/activity',
  '/cards',
  '/accounts',
  '/invest',
  '/compliance',
  '/security',
  '/developers',
  '/operator',
]

describe('the documents of the console', () => {
  const origin = sharedGateway()
  let owner: Person
  let browser: Browser
  let attacker: Server
  let evil = ''
  beforeAll(async () => {
    owner = await newGuest(origin)
    if (executable !== undefined) browser = await openBrowser()
    attacker = createServer((request, response) => {
      const target = origin.replace('127.0.0.1', 'localhost')
      response.setHeader('content-type', 'text/html')
      if (request.url?.startsWith('/frame') === true)
        response.end(`<iframe id="f" src="${target}/approvals"></iframe>`)
      else
        response.end(
          `<form id="f" method="post" enctype="text/plain" action="${target}/api/agents/pause"><input name='{"a":"' value='"}'></form>`,
        )
    })
    await new Promise<void>((resolve) => attacker.listen(0, '127.0.0.1', resolve))
    evil = `http://127.0.0.1:${(attacker.address() as AddressInfo).port}`
  }, 180_000)
  afterAll(async () => {
    await browser?.close()
    attacker?.close()
  })

  const visit = (path: string, headers: Record<string, string> = {}) =>
    fetch(`${origin.replace('127.0.0.1', 'localhost')}${path}`, {
      redirect: 'manual',
      headers: { accept: 'text/html', ...headers },
    })

  it.each(paths)('answers a direct visit of %s with one policy, without exceptions', async (path) => {
    const response = await visit(path, { cookie: `bursar_session=${owner.token}` })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toContain('text/html')
    expect(response.headers.get('content-security-policy')).toBe(policy)
    expect(response.headers.get('x-frame-options')).toBe('DENY')
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(await response.text()).not.toMatch(/<script(?![^>]*src="\/assets\/)|style=|onclick=|https?:\/\//)
  })

  it.each(paths)('leads a signed-out visitor of %s to the sign-in page, and back', async (path) => {
    const response = await visit(path)
    expect([response.status, response.headers.get('location')]).toEqual([
      302,
      `/sign-in?next=${encodeURIComponent(path)}`,
    ])
  })

  it('answers unknown paths with a page for browsers and a problem for programs', async () => {
    const page = await visit('/nowhere')
    expect([page.status, page.headers.get('content-type')]).toEqual([404, 'text/html; charset=UTF-8'])
    expect(await page.text()).toContain('There is no such page')
    const problem = await fetch(`${origin}/nowhere`, { headers: { accept: '*/*' } })
    expect([problem.status, problem.headers.get('content-type')]).toEqual([404, 'application/problem+json'])
    const api = await visit('/api/nowhere')
    expect(api.headers.get('content-type')).toBe('application/problem+json')
  })

  it('serves a mark for the tab, and a manifest', async () => {
    const icon = await visit('/favicon.ico')
    expect([icon.status, icon.headers.get('content-type')]).toEqual([200, 'image/svg+xml; charset=utf-8'])
    const manifest = await visit('/manifest.webmanifest')
    expect(await manifest.json()).toMatchObject({ name: 'Bursar', start_url: '/' })
  })

  describe.skipIf(executable === undefined)('in Chromium', () => {
    const signIn = async () => {
      const baseURL = origin.replace('127.0.0.1', 'localhost')
      const context = await browser.newContext({ baseURL })
      await giveSession(context, baseURL, owner.token)
      return context
    }

    it('cannot be framed', async () => {
      const context = await signIn()
      const page = await context.newPage()
      const refusals: string[] = []
      page.on('console', (message) => refusals.push(message.text()))
      await page.goto(`${evil}/frame`)
      await expect.poll(() => refusals.join('\n')).toMatch(/frame-ancestors|X-Frame-Options/)
      await context.close()
    })

    it('changes nothing for a form or a request of another origin', async () => {
      const { body: key } = await owner.send('POST', '/api/developer/keys', {
        name: 'Bystander',
        scopes: ['wallets:read'],
      })
      const context = await signIn()
      const page = await context.newPage()
      await page.goto(`${evil}/form`)
      await Promise.all([page.waitForNavigation(), page.evaluate('document.getElementById("f").submit()')])
      const target = origin.replace('127.0.0.1', 'localhost')
      await page.goto(`${evil}/form`)
      await page.evaluate(
        `fetch(${JSON.stringify(`${target}/api/agents/pause`)}, { method: 'POST', credentials: 'include', body: '{}', headers: { 'content-type': 'application/json' } }).catch(() => null)`,
      )
      await context.close()
      const { body } = await owner.send('GET', '/api/developer/keys')
      const keys = z.array(z.object({ id: z.string(), status: z.string() })).parse(body.keys)
      expect(keys.find(({ id }) => id === key.id)?.status).toBe('active')
    })

    it('shows a stolen link to nobody but its owner', async () => {
      const { body: key } = await owner.send('POST', '/api/developer/keys', {
        name: 'Asker',
        scopes: ['wallets:transfer'],
        policy: {
          perTransaction: { max: '1' },
          dailyBudget: { max: '1' },
          categories: { allow: ['transfer'] },
        },
      })
      const { body: asked } = await requestJson(origin, 'POST', '/api/approvals', {
        body: {
          operation: 'wallets.transfer',
          input: {
            destination: '0x000000000000000000000000000000000000dEaD',
            amount: '7.77',
            signature: 'sandbox',
          },
          reason: 'Secret reason',
        },
        headers: { authorization: `Bearer ${key.key}` },
      })
      const thief = await newGuest(origin)
      const baseURL = origin.replace('127.0.0.1', 'localhost')
      const context = await browser.newContext({ baseURL })
      await giveSession(context, baseURL, thief.token)
      const page = await context.newPage()
      await page.goto(`/approvals/${asked.approvalId}`)
      await page
        .getByText(/no such approval|did not load|not found/i)
        .first()
        .waitFor()
      const text = await page.locator('body').textContent()
      expect(text).not.toContain('7.77')
      expect(text).not.toContain('Secret reason')
      await context.close()
      const { body } = await owner.send('GET', `/api/approvals/${asked.approvalId}`)
      expect(body.status).toBe('pending')
    })

    it.each([
      '//evil.example/',
      'https://evil.example/',
      '/\\evil.example',
      'javascript:alert(1)',
      '/%2F/evil.example',
      '/sign-in/../..//evil.example',
    ])('does not lead from the sign-in page to %s', async (next) => {
      const context = await browser.newContext({ baseURL: origin.replace('127.0.0.1', 'localhost') })
      const page = await context.newPage()
      await page.goto(`/sign-in?next=${encodeURIComponent(next)}`)
      await page.getByRole('button', { name: /guest/i }).click()
      await page.getByText('Everything you have').waitFor()
      expect(new URL(page.url()).hostname).toBe('localhost')
      await context.close()
    })
  })
})
