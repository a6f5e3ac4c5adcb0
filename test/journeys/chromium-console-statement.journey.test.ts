/**
 * What the console tells of money that moved, in a real browser: an entry with its payee, memo, rules and receipt; a gain that
 * payouts do not touch; accounts side by side; the figures of an operator. Screenshots lie in `.build/screenshots`.
 */
import { mkdirSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { findBarriers } from './accessibility.ts'
import { findChromium, openBrowser } from './chromium.ts'
import { sharedGateway } from './gateway.ts'
import { enrollMfa, newGuest, newMailbox, type Person, requestJson, signInByEmail } from './people.ts'

const executable = findChromium()
const SCREENSHOTS = '.build/screenshots'
const payee = '0x000000000000000000000000000000000000dEaD'
const looks = [
  { name: 'light-1280', width: 1280, colorScheme: 'light' },
  { name: 'dark-1280', width: 1280, colorScheme: 'dark' },
  { name: 'light-375', width: 375, colorScheme: 'light' },
  { name: 'dark-375', width: 375, colorScheme: 'dark' },
] as const

if (executable === undefined)
  process.stderr.write('No Chromium here: the statement in the console is not tested. Set CHROMIUM_BIN.\n')

describe.skipIf(executable === undefined)('what the console tells of money', () => {
  const origin = sharedGateway()
  let browser: Browser
  let owner: Person
  let key: Record<string, unknown>
  const asAgent = (path: string, body: unknown) =>
    requestJson(origin, 'POST', path, {
      body,
      headers: { authorization: `Bearer ${String(key.key)}`, 'idempotency-key': crypto.randomUUID() },
    })
  beforeAll(async () => {
    browser = await openBrowser()
    owner = await newGuest(origin)
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Invoice bot',
      scopes: ['wallets:read', 'wallets:transfer'],
      policy: {
        perTransaction: { max: '10' },
        dailyBudget: { max: '20' },
        weeklyBudget: { max: '80' },
        categories: { allow: ['transfer', 'card'] },
        approval: { above: '8' },
      },
    })
    key = body
    const transfer = { destination: payee, token: 'USDC' }
    expect((await asAgent('/api/wallets/transfer', { ...transfer, amount: '4' })).status).toBe(200)
    const noted = { ...transfer, amount: '2.5', memo: 'Invoice 118' }
    expect((await asAgent('/api/wallets/transfer', noted)).status).toBe(200)
    expect((await asAgent('/api/wallets/transfer', { ...transfer, amount: '64' })).status).toBe(403)
    const { body: list } = await owner.send('GET', '/api/cards')
    const [card] = z.array(z.object({ id: z.string() })).parse(list.cards)
    await owner.send('POST', '/sandbox/authorizations', {
      cardId: card?.id,
      amount: '3.50',
      merchant: 'Example Books',
    })
    mkdirSync(SCREENSHOTS, { recursive: true })
  }, 180_000)
  afterAll(() => browser?.close())

  const open = async ({ token } = owner): Promise<{ context: BrowserContext; page: Page }> => {
    const url = origin.replace('127.0.0.1', 'localhost')
    const context = await browser.newContext({ baseURL: url, locale: 'en-GB', reducedMotion: 'reduce' })
    await context.addCookies([{ name: 'bursar_session', value: token, url }])
    const page = await context.newPage()
    await page.setViewportSize({ width: 1280, height: 960 })
    return { context, page }
  }
  /** Takes a screenshot of each look. @returns what is too wide or a barrier. */
  const look = async (page: Page, name: string) => {
    const found: string[] = []
    for (const { name: of, width, colorScheme } of looks) {
      await page.setViewportSize({ width, height: width === 375 ? 844 : 960 })
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.evaluate('Promise.allSettled(document.getAnimations().map((one) => one.finished))')
      if (await page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth'))
        found.push(`${of}: too wide`)
      const clipped =
        '[...document.querySelectorAll(".tablewrap")].some((one) => one.scrollWidth > one.clientWidth)'
      if (await page.evaluate<boolean>(clipped)) found.push(`${of}: a table is clipped`)
      for (const barrier of await findBarriers(page, colorScheme)) found.push(`${of}: ${barrier}`)
      await page.screenshot({ path: `${SCREENSHOTS}/${name}-${of}.png`, fullPage: true })
    }
    await page.setViewportSize({ width: 1280, height: 960 })
    return found
  }

  it('opens an entry to every rule with its numbers, and to a receipt that is verified and saved', async () => {
    const { context, page } = await open()
    await page.goto('/activity')
    const entry = page.locator('details', { hasText: 'Invoice 118' })
    await entry.locator('summary').getByText('0x0000…dEaD').waitFor()
    expect(await page.locator('summary', { hasText: 'Example Books' }).count()).toBe(1)
    await entry.locator('summary').click()
    await entry.getByRole('heading', { name: 'Allowed: 5 of 5 rules' }).waitFor()
    const texts = (await entry.locator('tbody td').allTextContents()).map((cell) => cell.trim())
    const cells = Array.from({ length: texts.length / 4 }, (_, row) => texts.slice(row * 4, row * 4 + 4))
    expect(cells).toEqual([
      ['At a time', '$2.50', 'of $10.00', 'Kept'],
      ['Pays by', 'Transfers', 'Transfers and Cards', 'Kept'],
      ['A day', '$2.50', '$4.00 of $20.00', 'Kept'],
      ['A week', '$2.50', '$4.00 of $80.00', 'Kept'],
      ['Ask me above', '$2.50', 'above $8.00', 'Kept'],
    ])
    await entry.getByText('Signature verified here').waitFor()
    expect(await look(page, 'statement')).toEqual([])
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      entry.getByRole('button', { name: 'Receipt' }).click(),
    ])
    const saved = z
      .object({
        entry: z.looseObject({ memo: z.string() }),
        decision: z.looseObject({ decisionId: z.string(), receipt: z.string() }),
        keys: z.url(),
      })
      .parse(JSON.parse(await text(await download.createReadStream())))
    expect(saved.entry.memo).toBe('Invoice 118')
    expect(download.suggestedFilename()).toBe(`receipt-${saved.decision.decisionId}.json`)
    await context.close()
  }, 180_000)

  it('prints one entry without the rest of the statement', async () => {
    const { context, page } = await open()
    await context.addInitScript('window.print = () => { window.printed = true }')
    await page.goto('/activity')
    const entry = page.locator('details', { hasText: 'Invoice 118' })
    await entry.locator('summary').click()
    await entry.getByRole('button', { name: 'Print' }).click()
    expect(await page.evaluate('window.printed')).toBe(true)
    await page.emulateMedia({ media: 'print' })
    expect(await entry.isVisible()).toBe(true)
    expect(await page.locator('details', { hasText: 'Example Books' }).isVisible()).toBe(false)
    await page.screenshot({ path: `${SCREENSHOTS}/statement-printed.png`, fullPage: true })
    await page.evaluate('window.dispatchEvent(new Event("afterprint"))')
    expect(await page.locator('details', { hasText: 'Example Books' }).isVisible()).toBe(true)
    await context.close()
  }, 180_000)

  it('shows what a denied payment broke, and filters by status', async () => {
    const { context, page } = await open()
    await page.goto('/activity')
    await page.locator('details', { hasText: 'Invoice 118' }).waitFor()
    await page.getByLabel('Status').selectOption('Denied')
    const entry = page.locator('details', { hasText: '64.00' })
    await entry.waitFor()
    await page.locator('details', { hasText: 'Invoice 118' }).waitFor({ state: 'detached' })
    // The list is drawn anew while it loads.
    await entry.waitFor()
    await expect.poll(() => page.locator('details').count()).toBe(1)
    expect(await entry.locator('.stmt__amount').textContent()).toBe('64.00 USDCnot paid')
    expect(new URL(page.url()).searchParams.get('status')).toBe('denied')
    await entry.locator('summary').click()
    await entry.getByRole('heading', { name: 'Denied: 2 of 4 rules broken' }).waitFor()
    await entry.getByText('$64.00 is above $10.00 a payment.').waitFor()
    expect(await entry.getByRole('link', { name: 'Change what it may do' }).getAttribute('href')).toBe(
      `/agents/${String(key.id)}`,
    )
    expect(await look(page, 'statement-denied')).toEqual([])
    await page.getByLabel('Status').selectOption('Reversed')
    await page.getByRole('heading', { name: 'Nothing matches' }).waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await page.locator('details', { hasText: 'Invoice 118' }).waitFor()
    await context.close()
  }, 180_000)

  it('tells what became of a payment, and gets it back at the press of the one button that helps', async () => {
    const buy = async (seller: string) => {
      const url = `${origin}/sandbox/sellers/${seller}`
      const { body } = await owner.send('POST', '/api/purchases', { url, maxAmount: '0.05', purpose: seller })
      expect(body).toMatchObject({ status: 'undelivered', charged: '0.01' })
    }
    await buy('refunds')
    await buy('refuses-refund')
    const { context, page } = await open()
    await page.goto('/activity?kind=purchase')
    const openEntry = async (seller: string) => {
      const entry = page.locator('details', { hasText: `“${seller}”` })
      await entry.locator('summary').click()
      await entry.getByText('Nothing came', { exact: true }).waitFor()
      return entry
    }
    const askBack = async (seller: string) => {
      const entry = await openEntry(seller)
      await entry.getByRole('button', { name: 'Get the money back' }).click()
      const dialog = page.getByRole('dialog', { name: 'Get the money back' })
      expect(await dialog.getByLabel('What is wrong').inputValue()).toBe('not_delivered')
      await dialog.getByLabel('A note').fill('Paid, and got nothing.')
      return { entry, dialog }
    }
    const paidBack = await askBack('refunds')
    expect(await look(page, 'payment-asked-back')).toEqual([])
    await paidBack.dialog.getByRole('button', { name: 'Get the money back' }).click()
    await paidBack.entry.getByText('0.01 USDC is back', { exact: true }).waitFor({ timeout: 30_000 })
    expect(await paidBack.entry.getByRole('button', { name: 'Get the money back' }).count()).toBe(0)
    const refused = await askBack('refuses-refund')
    await refused.dialog.getByRole('button', { name: 'Get the money back' }).click()
    await refused.entry
      .getByText('Refused: the money is not back', { exact: true })
      .waitFor({ timeout: 30_000 })
    expect(await look(page, 'payment-story')).toEqual([])
    // What came back leads to its payment.
    await page.goto('/activity?kind=deposit')
    await page.locator('summary', { hasText: '0.01' }).click()
    await page.getByRole('link', { name: 'An earlier payment' }).click()
    await page.locator('details', { hasText: '“refunds”' }).getByText('0.01 USDC is back').waitFor()
    await context.close()
  }, 180_000)

  it('says when the rules of an entry did not load, and loads them again', async () => {
    const { context, page } = await open()
    await page.route('**/api/agents/decisions/*/rules', (route) => route.abort())
    await page.goto('/activity')
    const entry = page.locator('details', { hasText: 'Invoice 118' })
    await entry.locator('summary').click()
    await entry.getByRole('heading', { name: 'The table of rules did not load' }).waitFor()
    await page.unroute('**/api/agents/decisions/*/rules')
    await entry.getByRole('button', { name: 'Try again' }).click()
    const heading = entry.getByRole('heading', { name: 'Allowed: 5 of 5 rules' })
    await heading.waitFor()
    expect(await heading.isVisible()).toBe(true)
    await context.close()
  }, 180_000)

  it('does not show a payout as a loss', async () => {
    const read = async () => {
      const { body } = await owner.send('GET', '/api/investing/portfolio?series=true')
      return z.object({ equity: z.string(), performance: z.object({ profitLoss: z.string() }) }).parse(body)
    }
    const before = await read()
    const { body: recipient } = await owner.send('POST', '/api/banking/recipients', {
      currency: 'EUR',
      name: 'Emmy Noether',
      country: 'DE',
      account: { iban: 'DE89370400440532013000' },
    })
    const payout = { recipientId: recipient.id, amount: '100', asset: 'USD' }
    const { status } = await owner.send('POST', '/api/banking/payouts', payout)
    expect(status).toBe(200)
    await expect
      .poll(async () => Number(before.equity) - Number((await read()).equity), { timeout: 20_000 })
      .toBeGreaterThan(90)
    const { context, page } = await open()
    await page.goto('/invest')
    const chart = page.getByRole('img', { name: /^Gain or loss this month: from \$0\.00 to / })
    await chart.waitFor()
    const said = (await chart.getAttribute('aria-label')) ?? ''
    const gain = /to (?<sign>[+\u2212]?)\$(?<usd>[\d,.]+)\.$/.exec(said)?.groups
    const shown = Number(gain?.usd?.replaceAll(',', '')) * (gain?.sign === '\u2212' ? -1 : 1)
    // Prices move by the second; the payout is a hundred dollars.
    expect(Math.abs(shown - Number(before.performance.profitLoss))).toBeLessThan(25)
    const labels = await chart.locator('.plot__x span').allTextContents()
    expect(labels).toHaveLength(4)
    expect(labels.at(-1)).toBe('Today')
    await chart.locator('canvas').waitFor()
    expect(await look(page, 'invest')).toEqual([])
    // The statement names the saved recipient.
    await page.goto('/activity?kind=payout')
    await page.locator('summary', { hasText: 'Emmy Noether' }).waitFor()
    await context.close()
  }, 180_000)

  it('lays accounts out side by side at 1280 pixels, with numbers that align', async () => {
    const { context, page } = await open()
    await page.goto('/accounts')
    const panel = (name: string) =>
      page.locator('section.panel', { has: page.getByRole('heading', { name }) })
    await panel('Wallet').locator('tbody tr').first().waitFor()
    const [wallet, people] = [
      await panel('Wallet').boundingBox(),
      await panel('Bank accounts you pay out to').boundingBox(),
    ]
    expect(wallet?.y).toBe(people?.y)
    expect((wallet?.x ?? 0) + (wallet?.width ?? 0)).toBeLessThan(people?.x ?? 0)
    for (const column of [3, 4, 5]) {
      const cells = await panel('Wallet').locator(`tr > :nth-child(${column})`).all()
      const boxes = await Promise.all(cells.map((cell) => cell.boundingBox()))
      const edges = boxes.map((box) => Math.round((box?.x ?? 0) + (box?.width ?? 0)))
      expect(edges.length).toBeGreaterThan(2)
      expect(new Set(edges).size).toBe(1)
    }
    expect(await look(page, 'accounts')).toEqual([])
    await context.close()
  }, 180_000)

  it('draws the past of a replay as bars of one width, newly denied ones red', async () => {
    const { context, page } = await open()
    await page.goto(`/agents/${String(key.id)}`)
    await page.getByRole('button', { name: 'Change policy' }).click()
    const strip = page.locator('svg.strip')
    await strip.waitFor()
    expect(await strip.locator('.dbad').count()).toBe(0)
    await page.getByLabel('At a time').fill('3')
    await page.getByText('Would have denied 1 of 3').waitFor()
    expect(await strip.locator('.dbad').count()).toBe(1)
    const bars = strip.locator('rect')
    expect(await bars.count()).toBe(3)
    const [strip1, bar] = [await strip.boundingBox(), await bars.first().boundingBox()]
    // Room for 41 bars: a short past does not make them broad.
    expect((bar?.width ?? 0) / (strip1?.width ?? 1)).toBeCloseTo(3 / 205, 2)
    expect(await look(page, 'replay')).toEqual([])
    await context.close()
  }, 180_000)

  it('gives an operator volume, refusals, the card float and the ages of queues', async () => {
    const operator = await signInByEmail(origin, newMailbox('operator'))
    expect((await operator.send('POST', '/sandbox/admin', {})).status).toBe(200)
    await enrollMfa(operator)
    const { status } = await asAgent('/api/approvals', {
      operation: 'wallets.transfer',
      input: { destination: payee, amount: '9' },
      reason: 'Please look at this first.',
    })
    expect(status).toBe(200)
    const { context, page } = await open(operator)
    await page.goto('/operator')
    const row = (name: string | RegExp) => page.getByRole('row', { name })
    await row('Transfers')
      .getByText(/\$[\d,.]+ × \d/)
      .first()
      .waitFor()
    // Other accounts of the gateway have been refused by other rules.
    expect(
      await row(/^At a time per_transaction /)
        .getByRole('cell')
        .allTextContents(),
    ).toEqual(['At a time per_transaction', expect.stringMatching(/^[1-9]/), expect.stringMatching(/^[1-9]/)])
    await row('Approvals by owners')
      .getByText(/^\d+ (s|min|h|days?)/)
      .waitFor()
    await page.getByText(/^The largest account: \$[\d,.]+ of \$[\d,.]+$/).waitFor()
    expect(await look(page, 'operator-figures')).toEqual([])
    await context.close()
  }, 180_000)
})
