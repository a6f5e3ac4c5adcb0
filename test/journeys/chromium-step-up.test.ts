/** The second factor on the sign-in page, in a real browser. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { secretOf, totpOf } from '../identity/signed-in.ts'
import { findChromium, newVisit, openBrowser } from './chromium.ts'
import { type Gateway, startGateway } from './gateway.ts'

const executable = findChromium()
const enrolled = z.looseObject({
  otpauthUri: z.string().optional(),
  recoveryCodes: z.array(z.string()).optional(),
})

describe.skipIf(executable === undefined)('the second factor in Chromium', () => {
  let gateway: Gateway
  let browser: Browser
  beforeAll(async () => {
    gateway = await startGateway({ CHAIN: 'simulated', RATE_MUTATIONS: '1000/60' })
    browser = await openBrowser(executable ?? '')
  })
  afterAll(async () => {
    await browser?.close()
    await gateway?.stop()
  })

  const addPasskey = (page: Page) => page.getByRole('button', { name: 'Add a passkey' }).click()
  const statusText = (page: Page) => page.getByRole('status').textContent()
  const focused = (page: Page) =>
    page.evaluate<string>('document.activeElement.id || document.activeElement.tagName')

  /** Person with a second factor, on a session that has not verified it, with a new authenticator plugged in. */
  async function comeWithSecondFactor() {
    const visit = await newVisit(browser, gateway.origin)
    const { page, addAuthenticator } = visit
    const unplug = await addAuthenticator()
    await page.goto('/sign-in')
    await page.getByText('Create an account').click()
    await page.getByLabel('Your name').fill('Ada')
    await page.getByRole('button', { name: 'Create account with a passkey' }).click()
    await page.getByRole('heading', { name: 'Signed in as Ada' }).waitFor()
    const { origin } = new URL(page.url())
    const mfa = async (data: Record<string, string>) =>
      enrolled.parse(
        await (await page.request.post(`${origin}/api/security/mfa`, { data, headers: { origin } })).json(),
      )
    const secret = secretOf((await mfa({ action: 'enroll' })).otpauthUri)
    const now = new Date()
    const { recoveryCodes = [] } = await mfa({ action: 'activate', code: totpOf(secret, now) })
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are signed out.').waitFor()
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByText('You are signed in.').waitFor()
    await unplug()
    await addAuthenticator()
    // Each code is accepted once: wait for the next one.
    const next = totpOf(secret, new Date(now.getTime() + 30_000))
    return { ...visit, next, wrong: next === '000000' ? '000001' : '000000', recoveryCodes }
  }

  it('continues the requested action after a wrong code and then the right one', async () => {
    const { page, next, wrong } = await comeWithSecondFactor()
    await addPasskey(page)
    const code = page.getByLabel('Code from your authenticator app')
    await code.fill(wrong)
    await page.getByRole('button', { name: 'Confirm' }).click()
    await page.getByText('The code is wrong or was used before.').waitFor()
    expect(await statusText(page)).toMatch(/before\. Wait for the authenticator’s next code\./)
    expect(await focused(page)).toBe('step-up-code')
    await code.fill(next)
    await page.getByRole('button', { name: 'Confirm' }).click()
    await page.getByText('Passkey added.').waitFor()
    expect(await page.getByRole('listitem').count()).toBe(2)
    expect(await code.isVisible()).toBe(false)
    expect(await focused(page)).toBe('account-title')
  })

  it('accepts a recovery code', async () => {
    const { page, recoveryCodes } = await comeWithSecondFactor()
    await addPasskey(page)
    await page.getByText('No app at hand?').click()
    const field = page.getByLabel('One of your recovery codes')
    await field.fill('0000-0000-0000-0000')
    await page.getByRole('button', { name: 'Use the recovery code' }).click()
    await page.getByText('The code is wrong or was used before.').waitFor()
    await field.fill(recoveryCodes[0] ?? '')
    await page.getByRole('button', { name: 'Use the recovery code' }).click()
    await page.getByText('Passkey added.').waitFor()
    expect(await page.getByRole('listitem').count()).toBe(2)
  })

  it('discards the requested action at sign-out', async () => {
    const { page } = await comeWithSecondFactor()
    await addPasskey(page)
    await page.getByLabel('Code from your authenticator app').fill('123')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are signed out.').waitFor()
    expect(await page.getByLabel('Code from your authenticator app').isVisible()).toBe(false)
    expect(await page.getByLabel('Code from your authenticator app').inputValue()).toBe('')
  })
})
