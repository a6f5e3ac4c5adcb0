/** The documentation in a real browser: no external requests, no content-policy violations, and complete. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { failureCodes } from '../../src/failures/failure.ts'
import { findChromium, newVisit, openBrowser } from './chromium.ts'
import { type Gateway, startGateway } from './gateway.ts'

const executable = findChromium()
if (executable === undefined)
  process.stderr.write(
    'No Chromium here: the documentation is not tested. Install one or set CHROMIUM_BIN.\n',
  )

describe('the pages that problem types link to', () => {
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await startGateway({ CHAIN: 'simulated' })
  })
  afterAll(() => gateway?.stop())

  it('exist for every code, and are listed', async () => {
    const list = await (await fetch(`${gateway.origin}/errors`)).text()
    for (const code of failureCodes) {
      expect(list).toContain(`href="/errors/${code}"`)
      const page = await fetch(`${gateway.origin}/errors/${code}`)
      expect([code, page.status, page.headers.get('content-type')]).toEqual([
        code,
        200,
        'text/html; charset=UTF-8',
      ])
      expect(await page.text()).toContain(`<code>${code}</code>`)
    }
    expect((await fetch(`${gateway.origin}/errors/made_up`)).status).toBe(404)
    expect((await fetch(`${gateway.origin}/errors/constructor`)).status).toBe(404)
  })

  it('are reached by the type of a real problem', async () => {
    const refusal = await fetch(`${gateway.origin}/api/wallets`)
    const { type } = z.object({ type: z.string() }).parse(await refusal.json())
    const page = await fetch(new URL(type, refusal.url))
    expect([page.status, (await page.text()).includes('Not authenticated')]).toEqual([200, true])
  })
})

describe.skipIf(executable === undefined)('the documentation in Chromium', () => {
  let gateway: Gateway
  let browser: Browser
  beforeAll(async () => {
    gateway = await startGateway({ CHAIN: 'simulated' })
    browser = await openBrowser(executable ?? '')
  })
  afterAll(async () => {
    await browser?.close()
    await gateway?.stop()
  })

  it('lists every operation with examples, executes one, and counts it against the rate limit', async () => {
    const { page, complaints } = await newVisit(browser, gateway.origin)
    const hosts = new Set<string>()
    page.on('request', (request) => {
      if (!request.url().startsWith('data:')) hosts.add(new URL(request.url()).origin)
    })
    await page.goto('/docs')
    await page.getByRole('heading', { name: 'Authentication' }).waitFor()
    const described = z
      .object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) })
      .parse(await (await fetch(`${gateway.origin}/api/openapi.json`)).json())
    const operations = Object.values(described.paths).flatMap((methods) => Object.keys(methods))
    await page.locator('.opblock').first().waitFor()
    expect(await page.locator('.opblock').count()).toBe(operations.length)

    const rails = page.locator('.opblock').filter({ has: page.locator('[data-path="/api/rails"]') })
    await rails.locator('.opblock-summary-control').click()
    await rails.getByText('"wallet-transfer"').first().waitFor()
    await rails.getByRole('button', { name: 'Try it out' }).click()
    await rails.getByRole('button', { name: 'Execute' }).click()
    await rails.locator('.live-responses-table .response-col_status').getByText('200').waitFor()

    await page.getByRole('button', { name: 'Yes', exact: true }).click()
    await page.getByText('Thank you.').waitFor()
    expect([...hosts]).toEqual([gateway.origin])
    expect(complaints).toEqual([])
  })

  it('is readable in dark mode, and states a remedy for each error', async () => {
    const { page, complaints } = await newVisit(browser, gateway.origin)
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.goto('/errors')
    await page.getByRole('link', { name: 'policy_denied' }).click()
    await page.getByRole('heading', { name: 'The spend policy denies this' }).waitFor()
    await page.getByRole('heading', { name: 'What to do' }).waitFor()
    await page.getByText('"violations"').first().waitFor()
    expect(await page.evaluate<string>('getComputedStyle(document.body).backgroundColor')).toBe(
      'rgb(20, 22, 26)',
    )
    await page.getByRole('link', { name: 'API', exact: true }).click()
    await page.locator('.opblock').first().waitFor()
    expect(await page.evaluate<boolean>("document.documentElement.classList.contains('dark-mode')")).toBe(
      true,
    )
    expect(complaints).toEqual([])
  })
})
