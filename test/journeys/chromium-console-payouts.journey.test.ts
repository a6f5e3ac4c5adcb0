/**
 * An owner pays out in a real browser: fee, rate and arrival stand there before the press, and USDC of a wallet that a passkey
 * owns is signed with it. Screenshots lie in `.build/screenshots`.
 */
import { mkdirSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { findBarriers } from './accessibility.ts'
import { createAccount, findChromium, newVisit, openBrowser } from './chromium.ts'
import { sharedGateway } from './gateway.ts'
import { requestJson } from './people.ts'

const executable = findChromium()
const SCREENSHOTS = '.build/screenshots'

if (executable === undefined)
  process.stderr.write('No Chromium here: payouts in the console are not tested. Set CHROMIUM_BIN.\n')

describe.skipIf(executable === undefined)('payouts in the console', () => {
  const origin = sharedGateway()
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
    mkdirSync(SCREENSHOTS, { recursive: true })
  }, 180_000)
  afterAll(() => browser?.close())

  it('say what arrives before the press, and are signed with the passkey that owns the wallet', async () => {
    const { page, complaints, addAuthenticator } = await newVisit(browser, origin)
    await addAuthenticator()
    await createAccount(page, 'Ada')
    const send = async (method: string, path: string, content?: object) => {
      const json = content === undefined ? {} : { body: JSON.stringify(content) }
      const init = { method, headers: { 'content-type': 'application/json' }, ...json }
      return z
        .record(z.string(), z.unknown())
        .parse(
          await page.evaluate<unknown>(
            `fetch(${JSON.stringify(path)}, ${JSON.stringify(init)}).then((response) => response.json())`,
          ),
        )
    }
    const { safeAddress: address } = await send('GET', '/api/wallets')
    const faucet = { address, token: 'USDC', amount: '50' }
    await requestJson(origin, 'POST', '/sandbox/faucet', { body: faucet })
    await expect
      .poll(async () => JSON.stringify(await send('GET', '/api/wallets')), { timeout: 20_000 })
      .toContain('"amount":"50"')
    await send('POST', '/api/banking/recipients', {
      currency: 'EUR',
      name: 'Emmy Noether',
      country: 'DE',
      account: { iban: 'DE89370400440532013000' },
    })

    await page.goto('/accounts')
    await page.getByRole('button', { name: 'Pay out' }).click()
    const dialog = page.getByRole('dialog')
    const press = dialog.getByRole('button', { name: /^Pay/ })
    await dialog.getByLabel('They get, in EUR').fill('5')
    await dialog.getByText('0.50 USD', { exact: true }).waitFor()
    await dialog
      .getByRole('radio', { name: 'USDC' })
      .or(dialog.getByText('USDC', { exact: true }))
      .first()
      .click()
    await dialog.getByText('0.50 USDC', { exact: true }).waitFor()
    await dialog.getByText('5.00 EUR', { exact: true }).waitFor()
    expect(await dialog.textContent()).toMatch(/1 USDC = 0\.\d+ EUR/)
    for (const [name, width] of [
      ['payout-1280', 1280],
      ['payout-390', 390],
    ] as const) {
      await page.setViewportSize({ width, height: 900 })
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
      await page.screenshot({ path: `${SCREENSHOTS}/${name}.png` })
    }
    expect(await findBarriers(page, 'light')).toEqual([])
    const shown = /Pay (?<amount>[\d.]+) USDC/.exec((await press.textContent()) ?? '')?.groups?.amount
    await press.click()
    await page.getByRole('heading', { name: 'The payout is on its way' }).waitFor()
    await page.screenshot({ path: `${SCREENSHOTS}/payout-sent.png` })
    await page.getByRole('button', { name: 'Done' }).click()

    const { payouts } = await send('GET', '/api/banking/payouts')
    const [payout, ...others] = z.array(z.record(z.string(), z.unknown())).parse(payouts)
    expect(others).toEqual([])
    expect(payout).toMatchObject({ asset: 'USDC', recipientAmount: '5', currency: 'EUR', fee: '0.5' })
    expect(Number(shown)).toBeCloseTo(Number(payout?.amount), 2)
    await expect
      .poll(async () => JSON.stringify(await send('GET', '/api/banking/payouts')), { timeout: 20_000 })
      .toContain('"status":"paid"')
    expect(complaints).toEqual([])
    await page.context().close()
  }, 90_000)
})
