/** Signing in, and the ways in under Security, in a real browser, as a person uses them. */
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { computeTotp, readSecret } from '../people/identity/signed-in.ts'
import {
  createAccount,
  expectVisible,
  findChromium,
  newVisit,
  openSuiteBrowser,
  waitForConsole,
} from './chromium.ts'
import { sharedGateway } from './gateway.ts'

const executable = findChromium()
if (executable === undefined)
  process.stderr.write('No Chromium here: the sign-in page is not tested. Install one or set CHROMIUM_BIN.\n')

describe.skipIf(executable === undefined)('the sign-in page in Chromium', () => {
  const origin = sharedGateway()
  const browser = openSuiteBrowser()

  /** Opens the console's page of passkeys, as a person does. */
  const goToSecurity = async (page: Page) => {
    await page
      .getByRole('navigation', { name: 'Main', exact: true })
      .getByRole('link', { name: 'Security' })
      .click()
    await page.getByRole('heading', { name: 'Passkeys' }).waitFor()
    // No read is under way any more, whose refusal would leave the page before a press.
    await expect.poll(() => page.locator('[aria-busy=true]').count()).toBe(0)
  }
  const locatePasskeys = (page: Page) => page.getByRole('region', { name: 'Passkeys' }).getByRole('listitem')

  const findFocused = (page: Page) => page.evaluate<string>('document.activeElement.id')

  it('registers an account with a passkey, signs out, and signs in again', async () => {
    const { page, complaints, addAuthenticator } = await newVisit(browser(), origin)
    const unplug = await addAuthenticator()
    await page.goto('/sign-in')
    // Passkeys belong to a domain, so the page has moved from the IP address to a name.
    expect(new URL(page.url()).hostname).toBe('localhost')
    await page.getByText('Create an account').click()
    await page.getByLabel('Your name').fill('Ada <b>Lovelace</b>')
    await page.getByRole('button', { name: 'Create account with a passkey' }).click()
    await waitForConsole(page, 'Ada <b>Lovelace</b>')
    expect(new URL(page.url()).pathname).toBe('/')
    await goToSecurity(page)
    await page.getByText('never used').waitFor()

    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are signed out.').waitFor()
    expect(await findFocused(page)).toBe('sign-in-title')
    await page.reload()
    expect(await page.getByRole('heading', { name: 'Sign in to Bursar' }).isVisible()).toBe(true)

    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await waitForConsole(page, 'Ada')
    await goToSecurity(page)
    await page.getByText(/· used /).waitFor()
    await page.reload()
    await waitForConsole(page, 'Ada')
    expect(complaints).toEqual([])

    // The same device again: its authenticator reports that it already holds a passkey.
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await page.getByText('This device already has a passkey for this account.').waitFor()

    // Another device: its passkey is added, and can be removed; the first one owns the wallet.
    await unplug()
    await addAuthenticator()
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await page.getByText('The passkey is added.').waitFor()
    await expect.poll(() => locatePasskeys(page).count()).toBe(2)
    await page
      .getByRole('button', { name: /^Remove the passkey/ })
      .first()
      .click()
    await page.getByText('The passkey is removed.').waitFor()
    await expect.poll(() => locatePasskeys(page).count()).toBe(1)
    expect(complaints).toEqual([])

    await page.getByRole('button', { name: /^Remove the passkey/ }).click()
    await page.getByText('owns the wallet on chain').waitFor()
  })

  it('signs in a guest, and explains a passkey failure', async () => {
    const { page, complaints, addAuthenticator } = await newVisit(browser(), origin)
    await addAuthenticator()
    await page.goto('/sign-in')
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByText('No passkey was used').waitFor()
    await page.getByRole('button', { name: 'Continue as a guest' }).click()
    await waitForConsole(page, 'Guest')
    await goToSecurity(page)
    await page.getByText('None yet. This guest account').waitFor()
    expect(complaints).toEqual([])
  })

  it('can be used with the keyboard alone', async () => {
    const { page, addAuthenticator } = await newVisit(browser(), origin)
    await addAuthenticator()
    await page.goto('/sign-in')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    await page.keyboard.type('Grace')
    await page.keyboard.press('Enter')
    await waitForConsole(page, 'Grace')
    expect(new URL(page.url()).pathname).toBe('/')
  })

  it('requires the second factor of an account that has one, and continues', async () => {
    const { page, addAuthenticator } = await newVisit(browser(), origin)
    const unplug = await addAuthenticator()
    await createAccount(page, 'Ada')
    const mfa = async (data: Record<string, string>) =>
      z.looseObject({}).parse(
        await (
          await page.request.post(`${new URL(page.url()).origin}/api/security/mfa`, {
            data,
            headers: { origin: new URL(page.url()).origin },
          })
        ).json(),
      )
    const secret = readSecret((await mfa({ action: 'enroll' })).otpauthUri)
    const now = new Date()
    expect(await mfa({ action: 'activate', code: computeTotp(secret, now) })).toHaveProperty('recoveryCodes')

    await goToSecurity(page)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are signed out.').waitFor()
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await waitForConsole(page, 'Ada')
    await goToSecurity(page)
    await unplug()
    await addAuthenticator()
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    // Each code is accepted once: wait for the next one.
    const next = new Date(now.getTime() + 30_000)
    await page.getByLabel('Code from your authenticator app').fill(computeTotp(secret, next))
    await page.getByRole('button', { name: 'Confirm' }).click()
    await page.getByText('The passkey is added.').waitFor()
    await expect.poll(() => locatePasskeys(page).count()).toBe(2)
  })

  it('creates no new account for a person whose session has ended', async () => {
    const { page, addAuthenticator } = await newVisit(browser(), origin)
    await addAuthenticator()
    await page.goto('/sign-in')
    await page.getByRole('button', { name: 'Continue as a guest' }).click()
    await waitForConsole(page, 'Guest')
    await goToSecurity(page)
    await page.context().clearCookies()
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await page.getByRole('heading', { name: 'Sign in to Bursar' }).waitFor()
    await page.getByText('You are no longer signed in.').waitFor()
    expect(await findFocused(page)).toBe('sign-in-title')
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByText('No passkey was used').waitFor()
  })

  it('removes the cookie of an ended session, and says that it has ended', async () => {
    const { page } = await newVisit(browser(), origin)
    await page.goto('/sign-in')
    await page.getByRole('button', { name: 'Continue as a guest' }).click()
    await waitForConsole(page, 'Guest')
    await goToSecurity(page)
    const cookies = await page.context().cookies()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are signed out.').waitFor()
    await page.context().addCookies(cookies)
    await page.reload()
    await page.getByText('The session has expired or was revoked. Please sign in again.').waitFor()
    expect(await page.context().cookies()).toEqual([])
    await page.getByRole('button', { name: 'Continue as a guest' }).click()
    await waitForConsole(page, 'Guest')
  })

  it('explains that the gateway is unreachable, and keeps the focus', async () => {
    const { page } = await newVisit(browser(), origin)
    await page.goto('/sign-in')
    const guest = page.getByRole('button', { name: 'Continue as a guest' })
    await page.route('**/api/auth/guest', (route) => route.abort())
    await guest.click()
    await page.getByText('Bursar cannot be reached. Check your connection').waitFor()
    await page.locator('#guest button:focus').waitFor()
    await page.unroute('**/api/auth/guest')
    await page.route('**/api/auth/guest', (route) =>
      route.fulfill({ status: 502, contentType: 'text/html', body: '<h1>Bad Gateway</h1>' }),
    )
    await guest.click()
    await expectVisible(
      page.getByText('Bursar returned an unexpected response (status 502). Try again in a moment.'),
    )
  })

  it('puts no form input into the URL when its script does not run', async () => {
    const context = await browser().newContext({ baseURL: origin, javaScriptEnabled: false })
    const page = await context.newPage()
    await page.goto('/sign-in')
    expect(await page.locator('noscript').textContent()).toContain('This page requires JavaScript')
    await page.getByText('Create an account').click()
    await page.getByLabel('Your name').fill('Ada Lovelace')
    const sent = page.waitForRequest((request) => request.method() === 'POST')
    await page.getByRole('button', { name: 'Create account with a passkey' }).click()
    expect(new URL((await sent).url()).search).toBe('')
    await context.close()
  })
})
