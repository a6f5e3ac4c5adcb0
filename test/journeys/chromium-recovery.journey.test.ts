/** Recovery of a locked account on the sign-in page, in a real browser. */
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import {
  createAccount,
  findChromium,
  newVisit,
  openSuiteBrowser,
  signInWithCode,
  waitForConsole,
} from './chromium.ts'
import { sharedGateway } from './gateway.ts'
import { lastCodeTo, newMailbox } from './people.ts'

const executable = findChromium()

describe.skipIf(executable === undefined)('recovery in Chromium', () => {
  const origin = sharedGateway()
  const browser = openSuiteBrowser()

  /** Signs in a person by a code to this mailbox. */
  async function comeByMail(page: Page, mailbox: string): Promise<void> {
    await page.goto('/sign-in')
    await signInWithCode(page, origin, mailbox)
  }

  async function lock(page: Page): Promise<void> {
    const { origin } = new URL(page.url())
    const answer = await page.request.post(`${origin}/api/security/lock`, { data: {}, headers: { origin } })
    expect(answer.status()).toBe(200)
  }

  /** Reads what recovery changed, and goes on to the console. */
  async function leaveRecovered(page: Page): Promise<void> {
    await page.getByRole('heading', { name: 'Your account is unlocked' }).waitFor()
    await page.getByText('All other sessions are signed out, and its keys are paused.').waitFor()
    expect(await page.evaluate('document.activeElement.id')).toBe('recovered-title')
    await page.getByRole('link', { name: 'Continue' }).click()
    await waitForConsole(page)
  }

  async function recoverByMail(page: Page, mailbox: string): Promise<void> {
    await page.getByLabel('Your account’s e-mail address or phone number').fill(mailbox)
    await page.getByRole('button', { name: 'Send a recovery code' }).click()
    await page.getByText('a code is on its way').waitFor()
    await page.getByLabel('Code from the message').fill(await lastCodeTo(origin, mailbox))
    await page.getByRole('button', { name: 'Recover with the code' }).click()
    await leaveRecovered(page)
  }

  it('is offered on the next visit, after the rejected cookie is removed', async () => {
    const { page } = await newVisit(browser(), origin)
    const mailbox = newMailbox('ada')
    await comeByMail(page, mailbox)
    await lock(page)
    await page.reload()
    await page.getByText('The account is locked. Use “Locked out?”').waitFor()
    // What stays says only that a person has signed in with this browser before.
    expect((await page.context().cookies()).map(({ name }) => name)).toEqual([
      expect.stringMatching(/^bursar_browser_\d+$/),
    ])
    await recoverByMail(page, mailbox)
  })

  it('is offered when an account turns out to be locked, and requires its passkey too', async () => {
    const { page, addAuthenticator } = await newVisit(browser(), origin)
    await addAuthenticator()
    const mailbox = newMailbox('grace')
    await comeByMail(page, mailbox)
    await page.goto('/security')
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await page.getByText('The passkey is added.').waitFor()
    // Each visit of the sign-in page abandons the answer to the one before, and only the first says why.
    const visits: string[] = []
    page.on('request', (request) => {
      if (request.isNavigationRequest()) visits.push(new URL(request.url()).pathname)
    })
    await lock(page)
    // The page's stream of events may find the lock before the press does.
    const told = page.getByText('The account is locked. Use “Locked out?”').waitFor()
    await Promise.any([told, page.getByRole('button', { name: 'Add a passkey' }).click()])
    await told
    expect(visits).toEqual(['/sign-in'])
    expect(await page.getByRole('button', { name: 'Recover with a passkey' }).isVisible()).toBe(true)
    // After a reload the page shows the options of a signed-out visitor; the passkey meets the lock again.
    await page.context().clearCookies()
    await page.reload()
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByText('The account is locked. Use “Locked out?”').waitFor()
    expect(await page.evaluate('document.activeElement.tagName')).toBe('SUMMARY')
    await recoverByMail(page, mailbox)
  })

  it('is available to every visitor of the page', async () => {
    const { page } = await newVisit(browser(), origin)
    await page.goto('/sign-in')
    await page.getByText('Locked out?').click()
    expect(await page.getByRole('button', { name: 'Send a recovery code' }).isVisible()).toBe(true)
    await page.getByLabel('Your account’s e-mail address or phone number').fill('+49 30 901820')
    await page.getByRole('button', { name: 'Send a recovery code' }).click()
    await page.getByText('This looks like a phone number. Choose “Phone”').waitFor()
  })

  it('requires only a passkey when the person has nothing else', async () => {
    const { page, addAuthenticator } = await newVisit(browser(), origin)
    await addAuthenticator()
    await createAccount(page, 'Ada')
    await lock(page)
    await page.reload()
    await page.getByRole('button', { name: 'Recover with a passkey' }).click()
    await leaveRecovered(page)
    await waitForConsole(page, 'Ada')
  })
})
