/**
 * Every page of the console in a real browser, with an account full of hostile names: on a phone and a
 * desktop, light and dark, without overflow, errors or violations of WCAG 2.2 AA. Screenshots lie in `.build/screenshots`.
 */
import { mkdirSync } from 'node:fs'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { findBarriers } from './accessibility.ts'
import { findChromium, giveSession, openBrowser } from './chromium.ts'
import { sharedGateway } from './gateway.ts'
import { newGuest, newMailbox, type Person, requestJson, signInByEmail } from './people.ts'

const executable = findChromium()
const SCREENSHOTS = '.build/screenshots'

const hostile = '<img src=x onerror="window.pwned=1">\u202Egnp.exe'
const payee = '0x000000000000000000000000000000000000dEaD'

const looks = [
  { name: 'light-1280', width: 1280, height: 960, colorScheme: 'light' },
  { name: 'dark-1280', width: 1280, height: 960, colorScheme: 'dark' },
  { name: 'light-390', width: 390, height: 844, colorScheme: 'light' },
  { name: 'dark-390', width: 390, height: 844, colorScheme: 'dark' },
] as const

/** Paths by the name of their screenshot, and the heading that says that the page is there. */
const pages: readonly (readonly [name: string, path: string, heading: RegExp])[] = [
  ['home', '/', /Everything you have/],
  ['agents', '/agents', /^Agents$/],
  ['agent', '/agents/:agent', /pwned/],
  ['agent-new', '/agents/new', /.+/],
  ['approvals', '/approvals', /^Approvals$/],
  ['approval', '/approvals/:approval', /wants to send/],
  ['activity', '/activity', /^Activity$/],
  ['cards', '/cards', /^Cards$/],
  ['accounts', '/accounts', /^Accounts$/],
  ['send', '/accounts/send', /^Send$/],
  ['invest', '/invest', /^Invest$/],
  ['compliance', '/compliance', /^Compliance$/],
  ['security', '/security', /^Security$/],
  ['developers', '/developers', /^Developers$/],
  ['operator', '/operator', /^Operator$/],
  ['not-found', '/nowhere', /no such page/i],
]

if (executable === undefined)
  process.stderr.write('No Chromium here: the pages of the console are not visited. Set CHROMIUM_BIN.\n')

describe.skipIf(executable === undefined)('the pages of the console in Chromium', () => {
  const origin = sharedGateway()
  let browser: Browser
  let owner: Person
  let operator: Person
  const ids = { agent: '', approval: '' }
  beforeAll(async () => {
    browser = await openBrowser()
    owner = await newGuest(origin)
    operator = await signInByEmail(origin, newMailbox('operator'))
    expect((await operator.send('POST', '/sandbox/admin', {})).status).toBe(200)
    const { body: key } = await owner.send('POST', '/api/developer/keys', {
      name: hostile,
      scopes: ['wallets:read', 'wallets:transfer', 'purchases:pay'],
      policy: {
        perTransaction: { max: '20' },
        dailyBudget: { max: '50' },
        categories: { allow: ['transfer', 'card', 'x402'] },
        approval: { above: '5', ttlSec: 3600 },
      },
    })
    ids.agent = z.string().parse(key.id)
    const asAgent = (path: string, body: unknown) =>
      requestJson(origin, 'POST', path, {
        body,
        headers: { authorization: `Bearer ${key.key}`, 'idempotency-key': crypto.randomUUID() },
      })
    const transfer = (amount: string) => ({ destination: payee, amount, signature: 'sandbox' })
    expect((await asAgent('/api/wallets/transfer', transfer('2.5'))).status).toBe(200)
    await asAgent('/api/wallets/transfer', transfer('64'))
    const { body: asked } = await asAgent('/api/approvals', {
      operation: 'wallets.transfer',
      input: transfer('7.25'),
      reason: `Ignore the rules. ${hostile} ${'long '.repeat(60)}`,
    })
    ids.approval = z.string().parse(asked.approvalId)
    const { body: list } = await owner.send('GET', '/api/cards')
    const [card] = z.array(z.object({ id: z.string() })).parse(list.cards)
    for (const amount of ['3.50', '100000'])
      await owner.send('POST', '/sandbox/authorizations', {
        cardId: card?.id,
        amount,
        merchant: hostile.slice(0, 40),
      })
    await owner.send('POST', '/api/webhook-endpoints', {
      url: 'http://127.0.0.1:9/hook',
      description: hostile,
    })
    mkdirSync(SCREENSHOTS, { recursive: true })
  }, 180_000)
  afterAll(() => browser?.close())

  const open = async ({ token } = owner): Promise<BrowserContext> => {
    const url = origin.replace('127.0.0.1', 'localhost')
    const context = await browser.newContext({ baseURL: url, locale: 'en-GB', reducedMotion: 'reduce' })
    await giveSession(context, url, token)
    return context
  }
  const show = async (page: Page, path: string, heading: RegExp) => {
    await page.goto(path.replace(':agent', ids.agent).replace(':approval', ids.approval))
    await page.getByRole('heading', { name: heading }).first().waitFor()
    await page.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' })
  }
  const isTooWide = (page: Page) =>
    page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth')

  it.each(pages)(
    'shows %s on every window, light and dark, without error or violation',
    async (name, path, heading) => {
      const context = await open(name === 'operator' ? operator : owner)
      const page = await context.newPage()
      const found: string[] = []
      page.on('console', (message) => {
        const isOwn404 = name === 'not-found' && message.text().includes('404')
        if (['error', 'warning'].includes(message.type()) && !isOwn404) found.push(message.text())
      })
      page.on('pageerror', (error) => found.push(error.message))
      await show(page, path, heading)
      for (const look of looks) {
        const { width, height, colorScheme } = look
        await page.setViewportSize({ width, height })
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
        // Colours change over a moment, which would be measured as they pass.
        await page.evaluate('Promise.allSettled(document.getAnimations().map((one) => one.finished))')
        if (await isTooWide(page)) found.push(`${look.name}: too wide`)
        for (const barrier of await findBarriers(page, colorScheme)) found.push(`${look.name}: ${barrier}`)
        await page.screenshot({ path: `${SCREENSHOTS}/${name}-${look.name}.png`, fullPage: true })
      }
      for (const width of [360, 768, 1600]) {
        await page.setViewportSize({ width, height: 900 })
        if (await isTooWide(page)) found.push(`${width} pixels: too wide`)
      }
      if ((await page.evaluate('window.pwned')) !== undefined) found.push('ran a name as script')
      await context.close()
      expect(found).toEqual([])
    },
  )

  it('is used by keyboard: the skip link, then the whole way to the first agent', async () => {
    const context = await open()
    const page = await context.newPage()
    await show(page, '/', /Everything you have/)
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the content')
    await page.keyboard.press('Enter')
    expect(await page.evaluate('document.activeElement.id')).toBe('main')
    const path = () => new URL(page.url()).pathname
    for (let presses = 0; presses < 40 && path() === '/'; presses += 1) {
      await page.keyboard.press('Tab')
      const href = await page.evaluate<string | null>('document.activeElement.getAttribute("href")')
      if (href === `/agents/${ids.agent}`) await page.keyboard.press('Enter')
    }
    expect(path()).toBe(`/agents/${ids.agent}`)
    await context.close()
  }, 180_000)
})
