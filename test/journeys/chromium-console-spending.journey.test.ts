/** Home in a real browser: what all agents spent this month, by payee and way of paying, and budgets that run out soon. */
import { mkdirSync } from 'node:fs'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { findBarriers } from './accessibility.ts'
import { findChromium, giveSession, newVisit, openBrowser } from './chromium.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person, requestJson } from './people.ts'

const executable = findChromium()
/** Folder for pictures of the page; absent: none are taken. */
const shots = process.env.SHOTS

describe.skipIf(executable === undefined)('spending on Home in Chromium', () => {
  let gateway: Gateway
  let browser: Browser
  let owner: Person
  let page: Page
  let send: (amount: string, to: string) => Promise<void>
  beforeAll(async () => {
    gateway = await startGateway({ CHAIN: 'simulated', RATE_MUTATIONS: '10000/60' })
    browser = await openBrowser()
    owner = await newGuest(gateway.origin)
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Research bot',
      scopes: ['wallets:read', 'wallets:transfer'],
      policy: {
        perTransaction: { max: '20' },
        dailyBudget: { max: '30' },
        monthlyBudget: { max: '30' },
        categories: { allow: ['transfer'] },
      },
    })
    const headers = { authorization: `Bearer ${z.string().parse(body.key)}` }
    send = async (amount, destination) => {
      const request = { destination, amount, signature: 'sandbox' }
      const { status } = await requestJson(gateway.origin, 'POST', '/api/wallets/transfer', {
        headers: { ...headers, 'idempotency-key': `${destination}-${amount}` },
        body: request,
      })
      expect(status).toBe(200)
    }
    const site = gateway.origin.replace('127.0.0.1', 'localhost')
    page = (await newVisit(browser, site)).page
    await giveSession(page.context(), site, owner.token)
  }, 180_000)
  afterAll(async () => {
    await browser?.close()
    await gateway?.stop()
  })

  it('says nothing until an agent has spent, and that it did not load', async () => {
    await page.goto('/')
    await page.getByRole('region', { name: 'Agents' }).getByText('Research bot').waitFor()
    await expect.poll(() => page.getByText('Spent by agents').count()).toBe(0)
    await page.route('**/api/statements/**', (route) => route.abort())
    await page.reload()
    await page.getByText('What they spent did not load').waitFor()
    await page.unroute('**/api/statements/**')
    await page.getByRole('button', { name: 'Try again' }).click()
    await expect.poll(() => page.getByText('Spent by agents').count()).toBe(0)
  }, 120_000)

  it('adds up by payee and way of paying, as payments are made', async () => {
    await send('17.25', `0x${'1'.repeat(40)}`)
    await send('6.50', `0x${'2'.repeat(40)}`)
    const panel = page.getByRole('region', { name: /^Spent by agents in / })
    await panel.getByText('2 payments').waitFor()
    await panel.getByText('$23.75').first().waitFor()
    expect(await panel.getByRole('listitem').allInnerTexts()).toEqual([
      expect.stringMatching(/Transfers\s+\$23\.75/),
      expect.stringMatching(/0x1111…1111\s+\$17\.25\s+73%/),
      expect.stringMatching(/0x2222…2222\s+\$6\.50\s+27%/),
    ])
    const low = page.getByRole('region', { name: 'Runs out soon' })
    await low.getByRole('img', { name: '$6.25 of $30.00 left this month' }).waitFor()
    for (const [width, height] of [
      [1280, 900],
      [390, 844],
    ] as const)
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.setViewportSize({ width, height })
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
        expect(await findBarriers(page, colorScheme)).toEqual([])
        if (shots === undefined) continue
        mkdirSync(shots, { recursive: true })
        await page.screenshot({ path: `${shots}/spending-${width}-${colorScheme}.png`, fullPage: true })
      }
  }, 120_000)
})
