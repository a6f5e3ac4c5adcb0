/**
 * The console as it lives, on both engines and a real chain: a newcomer's way to the first approved payment, two
 * browsers and an agent at once, and a gateway that restarts under them.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { freePort } from '../free-port.ts'
import { findChromium, openBrowser } from './chromium.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { requestJson } from './people.ts'

const executable = findChromium()
const payee = '0x71C7656EC7ab88b098defB751B7401B5f6d8976F'
const MAX_PRESSES = 12
const MAX_MS = 120_000
/** Time that a change may take to show in another browser. Tests on a loaded machine get more. */
const SHOWN_WITHIN_MS = 10_000

if (executable === undefined)
  process.stderr.write('No Chromium here: the console is not watched. Set CHROMIUM_BIN.\n')

describe.skipIf(executable === undefined)('the console on PGlite', () => live(undefined))
describe.skipIf(executable === undefined || testServerUrl === undefined)('the console on PostgreSQL', () =>
  live(testServerUrl),
)

function live(serverUrl: string | undefined): void {
  const directory = mkdtempSync(join(tmpdir(), 'bursar-console-'))
  let database: Awaited<ReturnType<typeof createTestDatabase>> | undefined
  let env: Record<string, string> = {}
  let gateway: Gateway
  let browser: Browser
  let first: Page
  let second: Page
  let key = ''
  let startedAt = 0
  beforeAll(async () => {
    if (serverUrl !== undefined) database = await createTestDatabase(serverUrl)
    env = {
      PORT: String(await freePort()),
      DATA_DIR: join(directory, 'data'),
      RATE_MUTATIONS: '10000/60',
      ...(database === undefined ? {} : { DATABASE_URL: database.url }),
    }
    browser = await openBrowser()
    startedAt = performance.now()
    gateway = await startGateway(env)
  }, 180_000)
  afterAll(async () => {
    await browser?.close()
    await gateway?.stop()
    await database?.drop()
    rmSync(directory, { recursive: true, force: true })
  })

  const at = (path: string) => `${gateway.origin.replace('127.0.0.1', 'localhost')}${path}`
  const pay = (amount: string) =>
    requestJson(gateway.origin, 'POST', '/api/wallets/transfer', {
      body: { destination: payee, amount, signature: 'sandbox' },
      headers: { authorization: `Bearer ${key}`, 'idempotency-key': crypto.randomUUID() },
    })
  /** Rows of the latest entries with this amount. */
  const rows = (page: Page, amount: string) =>
    page.getByRole('link', { name: new RegExp(`−${amount.replace('.', '\\.')}\\b`) })
  /** The same on the page of all activity. */
  const entries = (page: Page, amount: string) =>
    page.locator('summary', { hasText: new RegExp(`−${amount.replace('.', '\\.')}\\b`) })

  it('leads a newcomer from the start to an approved first payment', async () => {
    const context = await browser.newContext()
    first = await context.newPage()
    let presses = 0
    const press = async (name: string | RegExp, role: 'button' | 'link' = 'button') => {
      presses += 1
      await first.getByRole(role, { name }).first().click()
    }
    await first.goto(at('/'))
    await press(/guest/i)
    await press('New agent', 'link')
    await first.getByLabel('Name').fill('Shopper')
    await press('Continue')
    await press('Continue')
    await press('API key')
    await press('Make an API key')
    await first.getByRole('heading', { name: 'Its key' }).waitFor()
    key = (await first.locator('.copy code').first().textContent()) ?? ''
    expect((await pay('3')).body.code).toBe('approval_required')
    await press('Home', 'link')
    await press(/^Review/, 'link')
    await press('Approve')
    await first.getByRole('heading', { name: 'Approved and completed' }).waitFor()
    const ms = performance.now() - startedAt
    process.stdout.write(
      `from the start to the first payment: ${presses} presses, ${Math.round(ms / 100) / 10} s\n`,
    )
    expect(presses).toBeLessThanOrEqual(MAX_PRESSES)
    expect(ms).toBeLessThan(MAX_MS)
  }, 120_000)

  it('shows in two browsers what an agent does, and what either of them does', async () => {
    const cookies = await first.context().cookies()
    const other = await browser.newContext()
    await other.addCookies(cookies)
    second = await other.newPage()
    await Promise.all([first.goto(at('/')), second.goto(at('/'))])
    await Promise.all([first, second].map((page) => page.getByText('Live').first().waitFor()))
    await rows(second, '3.00').first().waitFor()
    expect((await pay('1.11')).status).toBe(200)
    const paidAt = performance.now()
    await Promise.all([first, second].map((page) => rows(page, '1.11').waitFor({ timeout: SHOWN_WITHIN_MS })))
    process.stdout.write(
      `a payment shows in both browsers after ${Math.round(performance.now() - paidAt)} ms\n`,
    )

    await first.getByRole('button', { name: 'Stop all agents' }).click()
    await first
      .getByRole('dialog')
      .getByRole('button', { name: /Stop 1 agent/ })
      .click()
    await second.getByText('Stopped').first().waitFor({ timeout: SHOWN_WITHIN_MS })
    expect((await pay('1.12')).status).toBe(403)
    await second
      .getByRole('link', { name: /Shopper/ })
      .first()
      .click()
    await second.getByRole('button', { name: 'Start again' }).click()
    await second.getByRole('button', { name: 'Stop', exact: true }).waitFor()
    await expect.poll(() => first.getByText('Stopped').count(), { timeout: SHOWN_WITHIN_MS }).toBe(0)
    await second.goto(at('/'))
  }, 180_000)

  it('goes on after the gateway restarts, without loss or doubles', async () => {
    await Promise.all([first, second].map((page) => page.getByText('Live').first().waitFor()))
    // Home shows eight entries, and dividends of that day may come between them.
    for (const page of [first, second]) {
      await page.getByRole('link', { name: 'All activity' }).click()
      await entries(page, '1.11').waitFor()
    }
    await gateway.stop()
    await first
      .getByText(/interrupted|Reconnecting/)
      .first()
      .waitFor()
    gateway = await startGateway(env)
    // Paid before the streams are back: they must not miss it.
    expect((await pay('1.23')).status).toBe(200)
    for (const page of [first, second]) {
      await page.getByText('Live').first().waitFor({ timeout: 30_000 })
      await entries(page, '1.23').waitFor({ timeout: 30_000 })
    }
    expect((await pay('1.34')).status).toBe(200)
    for (const page of [first, second]) {
      await entries(page, '1.34').waitFor({ timeout: SHOWN_WITHIN_MS })
      for (const amount of ['1.11', '1.23', '1.34']) expect(await entries(page, amount).count()).toBe(1)
    }
  }, 120_000)
}
