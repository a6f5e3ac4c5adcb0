/** The second factor that the console asks for, in a real browser. */
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { computeTotp, readSecret } from '../people/identity/signed-in.ts'
import { createAccount, findChromium, newVisit, openSuiteBrowser, waitForConsole } from './chromium.ts'
import { sharedGateway } from './gateway.ts'

const executable = findChromium()
const enrolled = z.looseObject({
  otpauthUri: z.string().optional(),
  recoveryCodes: z.array(z.string()).optional(),
})

describe.skipIf(executable === undefined)('the second factor in Chromium', () => {
  const origin = sharedGateway()
  const browser = openSuiteBrowser()

  const addPasskey = (page: Page) => page.getByRole('button', { name: 'Add a passkey' }).click()
  const locatePasskeys = (page: Page) => page.getByRole('region', { name: 'Passkeys' }).getByRole('listitem')

  /** Person with a second factor, on a session that has not verified it, with a new authenticator plugged in. */
  async function comeWithSecondFactor() {
    const visit = await newVisit(browser(), origin)
    const { page, addAuthenticator } = visit
    const unplug = await addAuthenticator()
    await createAccount(page, 'Ada')
    const { origin: site } = new URL(page.url())
    const mfa = async (data: Record<string, string>) =>
      enrolled.parse(
        await (
          await page.request.post(`${site}/api/security/mfa`, { data, headers: { origin: site } })
        ).json(),
      )
    const secret = readSecret((await mfa({ action: 'enroll' })).otpauthUri)
    const now = new Date()
    const { recoveryCodes = [] } = await mfa({ action: 'activate', code: computeTotp(secret, now) })
    await page.goto('/security')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are signed out.').waitFor()
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await waitForConsole(page, 'Ada')
    await page.goto('/security')
    await page.getByText('Added').first().waitFor()
    await unplug()
    await addAuthenticator()
    // Each code is accepted once: wait for the next one.
    const next = computeTotp(secret, new Date(now.getTime() + 30_000))
    return { ...visit, next, wrong: next === '000000' ? '000001' : '000000', recoveryCodes }
  }

  it('continues the requested action after a wrong code and then the right one', async () => {
    const { page, next, wrong } = await comeWithSecondFactor()
    await addPasskey(page)
    const code = page.getByLabel('Code from your authenticator app')
    await code.fill(wrong)
    await page.getByRole('button', { name: 'Confirm' }).click()
    await page.getByText('The code is wrong or was used before.').waitFor()
    expect(await page.locator('.field__error').textContent()).toMatch(
      /before\. Wait for the authenticator’s next code\./,
    )
    expect(await code.getAttribute('aria-invalid')).toBe('true')
    expect(await page.evaluate("document.activeElement.matches('dialog input')")).toBe(true)
    await code.fill(next)
    await page.getByRole('button', { name: 'Confirm' }).click()
    await page.getByText('The passkey is added.').waitFor()
    await expect.poll(() => locatePasskeys(page).count()).toBe(2)
    expect(await code.isVisible()).toBe(false)
  })

  it('is switched off by its code, and asks for no other after a wrong one', async () => {
    const { page, next, wrong } = await comeWithSecondFactor()
    await page.getByRole('button', { name: 'Switch it off' }).click()
    const dialog = page.getByRole('dialog')
    const code = dialog.getByLabel('Code from your authenticator app')
    const confirm = dialog.getByRole('button', { name: 'Switch it off' })
    await code.fill(wrong)
    await confirm.click()
    await dialog.getByText('The code is wrong or was used before.').waitFor()
    expect(await dialog.count()).toBe(1)
    // As the app shows it, and as people copy it.
    await code.fill(`${next.slice(0, 3)} ${next.slice(3)}`)
    await confirm.click()
    await page.getByText('The second factor is off.').waitFor()
  })

  it('is not asked of a person who has none: a new sign-in is', async () => {
    const { page, addAuthenticator } = await newVisit(browser(), origin)
    await addAuthenticator()
    await createAccount(page, 'Ada')
    await page.goto('/security')
    // A sandbox takes every session for a fresh one; this is the answer of production to an older one.
    const detail = 'This operation requires a sign-in from the last five minutes.'
    const stale = { type: '/errors/step_up_required', title: 'Confirm', status: 401, detail }
    await page.route('**/api/security/mfa', (route, request) =>
      request.postData()?.includes('enroll') === true
        ? route.fulfill({
            status: 401,
            contentType: 'application/problem+json',
            json: { ...stale, code: 'step_up_required', instance: '/api/security/mfa', requestId: 'req_1' },
          })
        : route.continue(),
    )
    await page.getByRole('button', { name: 'Add an authenticator app' }).click()
    await page.getByRole('button', { name: 'Show the code to scan' }).click()
    await page.getByText(detail).waitFor()
    expect(await page.getByLabel('Code from your authenticator app').count()).toBe(0)
    await page.getByRole('button', { name: 'Sign in again' }).click()
    await page.getByText('You are no longer signed in.').waitFor()
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await waitForConsole(page, 'Ada')
    expect(new URL(page.url()).pathname).toBe('/security')
  })

  it('is asked for once by the operator’s page, whose lists need it', async () => {
    const { page, next } = await comeWithSecondFactor()
    const { origin: site } = new URL(page.url())
    await page.request.post(`${site}/sandbox/admin`, { data: {}, headers: { origin: site } })
    await page.goto('/operator')
    await page.getByRole('button', { name: 'Show what waits' }).click()
    expect(await page.getByText('did not load').count()).toBe(0)
    await page.getByLabel('Code from your authenticator app').fill(next)
    await page.getByRole('button', { name: 'Confirm' }).click()
    for (const [list, quiet] of [
      ['In review', 'Nothing waits.'],
      ['Identities to compare', 'No application waits.'],
      ['Alarms', 'Nothing contradicts the books.'],
    ] as const) {
      const region = page.getByRole('region', { name: list })
      await region.getByText(quiet).or(region.getByRole('listitem')).first().waitFor()
    }
    expect(await page.getByRole('dialog').count()).toBe(0)
    expect(await page.getByText('did not load').count()).toBe(0)
  })

  it('accepts a recovery code', async () => {
    const { page, recoveryCodes } = await comeWithSecondFactor()
    await addPasskey(page)
    await page.getByRole('button', { name: 'Use a recovery code' }).click()
    const field = page.getByLabel('Recovery code')
    await field.fill('0000-0000-0000-0000')
    await page.getByRole('button', { name: 'Confirm' }).click()
    await page.getByText('The code is wrong or was used before.').waitFor()
    await field.fill(recoveryCodes[0] ?? '')
    await page.getByRole('button', { name: 'Confirm' }).click()
    await page.getByText('The passkey is added.').waitFor()
    await expect.poll(() => locatePasskeys(page).count()).toBe(2)
  })

  it('discards the requested action when its person gives it up, and at sign-out', async () => {
    const { page } = await comeWithSecondFactor()
    await addPasskey(page)
    const code = page.getByLabel('Code from your authenticator app')
    await code.fill('123')
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    await expect.poll(() => code.count()).toBe(0)
    // A keyboard goes on where it was.
    await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('Add a passkey')
    // Nobody without the factor can silence the owner, and the menu says what holds.
    const mails = page.getByLabel('Mail', { exact: true })
    await mails.selectOption('off')
    await code.waitFor()
    await page.keyboard.press('Escape')
    await expect.poll(() => mails.inputValue()).toBe('immediately')
    expect(await locatePasskeys(page).count()).toBe(1)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are signed out.').waitFor()
    expect(await code.count()).toBe(0)
    expect(await page.evaluate('sessionStorage.length')).toBe(0)
  })
})
