/**
 * An owner in a real browser at a gateway whose bank and broker verify persons themselves: from the verified identity
 * over the bank's pages and the broker's questions to an account and an order. The vendors' servers are strict.
 */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startAlpacaServer } from '../contracts/alpaca-server.ts'
import { startBridgeServer } from '../contracts/bridge-server.ts'
import { findBarriers } from './accessibility.ts'
import { expectVisible, findChromium, newVisit, openBrowser, signInWithCode, type Visit } from './chromium.ts'
import { type Gateway, startGateway } from './gateway.ts'

const executable = findChromium()

describe.skipIf(executable === undefined)('the bank and the broker in Chromium', () => {
  let bank: Awaited<ReturnType<typeof startBridgeServer>>
  let broker: Awaited<ReturnType<typeof startAlpacaServer>>
  let gateway: Gateway
  let browser: Browser
  let visit: Visit
  let page: Page
  beforeAll(async () => {
    bank = await startBridgeServer()
    broker = await startAlpacaServer()
    gateway = await startGateway({
      CHAIN: 'simulated',
      RATE_MUTATIONS: '10000/60',
      BRIDGE_API_URL: bank.url,
      BRIDGE_API_KEY: 'secret',
      ALPACA_URL: broker.url,
      ALPACA_DATA_URL: broker.url,
      ALPACA_API_KEY: 'key',
      ALPACA_API_SECRET: 'secret',
      ALPACA_FIRM_ACCOUNT_ID: broker.firm.id,
    })
    browser = await openBrowser()
    visit = await newVisit(browser, gateway.origin)
    page = visit.page
    await page.goto('/sign-in?next=%2Faccounts')
    await signInWithCode(page, gateway.origin, 'ada@example.com')
  }, 90_000)
  afterAll(async () => {
    await browser?.close()
    await gateway?.stop()
    bank?.close()
    broker?.close()
  })

  const region = (name: string) => page.getByRole('region', { name })
  const atBank = () => region('The bank wants to know you')
  const atBroker = () => region('Your account at the broker')
  const dialog = () => page.getByRole('dialog')
  const press = (name: string) => page.getByRole('button', { name, exact: true }).first().click()
  /** Every width of the page as it is now, in both themes. */
  const expectGood = async () => {
    for (const colorScheme of ['light', 'dark'] as const)
      for (const width of [360, 1280]) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
        await page.setViewportSize({ width, height: 900 })
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
        expect(await findBarriers(page, colorScheme)).toEqual([])
        const name = `${new URL(page.url()).pathname.slice(1)}-provider-${width}-${colorScheme}`
        await page.screenshot({ path: `.build/screenshots/${name}.png`, fullPage: true })
      }
  }

  it('ask for a verified identity first', async () => {
    await atBank().getByRole('button', { name: 'Start' }).click()
    await atBank().getByRole('link', { name: 'Verify your identity first' }).click()
    for (const [label, value] of [
      ['Given names', 'Ada'],
      ['Family name', 'Lovelace'],
      ['Date of birth', '1990-12-10'],
      ['Country', 'us'],
      ['Street and number', '1 Main Street'],
      ['Postal code', '10001'],
      ['City', 'New York'],
      ['State or province', 'NY'],
      ['E-mail', 'ada@example.com'],
    ] as const)
      await page.getByLabel(label, { exact: true }).fill(value)
    await press('Send for review')
    await expectVisible(page.getByText('You are verified.'))
  }, 180_000)

  it('open an account at the bank after its two pages', async () => {
    await page.goto('/accounts')
    await atBank().getByRole('button', { name: 'Start' }).click()
    const identity = atBank().getByRole('link', { name: /^Prove your identity/ })
    await identity.waitFor()
    const [link] = bank.links.values()
    if (link === undefined) throw new Error('the bank has no link')
    expect(await identity.getAttribute('href')).toBe(link.kyc_link)
    expect(await identity.getAttribute('rel')).toBe('noopener noreferrer')
    await expectGood()
    Object.assign(link, { kyc_status: 'approved' })
    await atBank().getByRole('button', { name: 'Check again' }).click()
    await atBank().getByText('Done', { exact: true }).waitFor()
    expect(await identity.count()).toBe(0)
    Object.assign(link, { tos_status: 'approved', customer_id: 'cust_1' })
    await atBank().getByRole('button', { name: 'Check again' }).click()
    await expect.poll(() => atBank().count()).toBe(0)
    await press('New account')
    await dialog().getByLabel('Currency').selectOption('USD')
    await dialog().getByRole('button', { name: 'Open it' }).click()
    await region('US dollars').getByText('101019644').waitFor()
  }, 90_000)

  it('open an account at the broker after its questions', async () => {
    await page.goto('/invest')
    await atBroker().getByText('Still missing: Phone.').waitFor()
    await expectGood()
    await atBroker().getByRole('link', { name: 'Add it to your verified identity' }).click()
    await page.getByRole('button', { name: 'Basic', exact: true }).click()
    await press('Add e-mail, phone or address')
    await page.getByLabel('Phone', { exact: true }).fill('+1 555 666 7788')
    await press('Keep them')
    await page.getByText(/^Your details are kept/).waitFor()
    await page.goto('/invest')
    await atBroker().getByRole('button', { name: 'Open it' }).click()
    const open = dialog().getByRole('button', { name: 'Open it' })
    expect(await open.isDisabled()).toBe(true)
    await dialog().getByLabel('Tax id', { exact: true }).fill('666-55-4321')
    await dialog().getByLabel('Wages').check()
    await dialog()
      .getByLabel(/^I have read and accept/)
      .check()
    await expectGood()
    await open.click()
    await page.getByText('The broker has your application.').waitFor()
    await expect.poll(() => atBroker().count()).toBe(0)
    const [, account] = [...broker.accounts.values()]
    expect(account?.identity).toMatchObject({
      given_name: 'Ada',
      family_name: 'Lovelace',
      tax_id_type: 'USA_SSN',
    })
  }, 90_000)

  it('leave nothing in the browser’s console but the first refusal', () => {
    expect(visit.complaints).toEqual([expect.stringContaining('status of 403')])
  })
})
