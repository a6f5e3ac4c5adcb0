/** The sign-in page in a real browser, as a person uses it. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findChromium, newVisit, openBrowser } from './chromium.ts'
import { type Gateway, startGateway } from './gateway.ts'

const executable = findChromium()
if (executable === undefined)
  process.stderr.write('No Chromium here: the sign-in page is not tested. Install one or set CHROMIUM_BIN.\n')

describe.skipIf(executable === undefined)('the sign-in page in Chromium', () => {
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

  it('makes an account with a passkey, signs out, and in again', async () => {
    const { page, complaints, addAuthenticator } = await newVisit(browser, gateway.origin)
    const unplug = await addAuthenticator()
    await page.goto('/sign-in')
    // Passkeys belong to a domain: the address became one.
    expect(new URL(page.url()).hostname).toBe('localhost')
    await page.getByText('Create an account').click()
    await page.getByLabel('Your name').fill('Ada <b>Lovelace</b>')
    await page.getByRole('button', { name: 'Create account with a passkey' }).click()
    await page.getByRole('heading', { name: 'Signed in as Ada <b>Lovelace</b>' }).waitFor()
    await page.getByText('Your account is made').waitFor()
    await page.getByText('never used').waitFor()

    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are signed out.').waitFor()
    await page.reload()
    expect(await page.getByRole('heading', { name: 'Sign in to Bursar' }).isVisible()).toBe(true)

    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByRole('heading', { name: 'Signed in as Ada' }).waitFor()
    await page.getByText('used on').waitFor()
    await page.reload()
    await page.getByRole('heading', { name: 'Signed in as Ada' }).waitFor()
    expect(complaints).toEqual([])

    // The same device again: its authenticator says that it holds one already.
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await page.getByText('This device already holds a passkey of this account.').waitFor()

    // Another device: its passkey is added, and the first one can go.
    await unplug()
    await addAuthenticator()
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await page.getByText('The passkey is added.').waitFor()
    expect(await page.getByRole('listitem').count()).toBe(2)
    await page
      .getByRole('button', { name: /^Remove the passkey/ })
      .last()
      .click()
    await page.getByText('The passkey is removed.').waitFor()
    expect(await page.getByRole('listitem').count()).toBe(1)
    expect(complaints).toEqual([])

    await page.getByRole('button', { name: /^Remove the passkey/ }).click()
    await page.getByText('only way into the account').waitFor()
  })

  it('lets a guest in, and says what went wrong with a passkey', async () => {
    const { page, complaints, addAuthenticator } = await newVisit(browser, gateway.origin)
    await addAuthenticator()
    await page.goto('/sign-in')
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByText('No passkey was used').waitFor()
    await page.getByRole('button', { name: 'Try it as a guest' }).click()
    await page.getByRole('heading', { name: 'Signed in as Guest' }).waitFor()
    await page.getByText('None yet.').waitFor()
    expect(complaints).toEqual([])
  })

  it('can be used with the keyboard alone', async () => {
    const { page, addAuthenticator } = await newVisit(browser, gateway.origin)
    await addAuthenticator()
    await page.goto('/sign-in')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    await page.keyboard.type('Grace')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Signed in as Grace' }).waitFor()
    expect(await page.getByRole('status').textContent()).toBe('Your account is made, and you are signed in.')
  })
})
