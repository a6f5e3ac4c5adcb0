/** One-time codes and identity providers on the sign-in page, in a real browser. */
import { describe, expect, it } from 'vitest'
import { findChromium, newVisit, openSuiteBrowser, signInWithCode, waitForConsole } from './chromium.ts'
import { sharedGateway } from './gateway.ts'
import { newMailbox } from './people.ts'

const executable = findChromium()
const address = 'E-mail address or phone number'

describe.skipIf(executable === undefined)('authentication without passkeys in Chromium', () => {
  const origin = sharedGateway()
  const browser = openSuiteBrowser()

  it('signs in with a code that was sent', async () => {
    const { page, complaints } = await newVisit(browser(), origin)
    await page.goto('/sign-in')
    await signInWithCode(page, origin, newMailbox('ada'))
    expect(complaints).toEqual([])
  })

  it('keeps a guest whose session token has expired, in the console and on its calls', async () => {
    const { page, complaints } = await newVisit(browser(), origin)
    await page.goto('/sign-in')
    await page.getByRole('button', { name: 'Continue as a guest' }).click()
    await waitForConsole(page, 'Guest')
    const read = 'fetch("/api/auth/session").then((r) => r.json()).then((a) => a.account?.id)'
    const guest = await page.evaluate<string>(read)
    const cookies = async () => (await page.context().cookies()).map(({ name }) => name).sort()
    for (const comeBack of [() => page.goto('/agents'), () => page.evaluate(read)]) {
      // A browser drops the cookie with its Max-Age.
      await page.context().clearCookies({ name: /^bursar_session/ })
      await comeBack()
      expect(await page.evaluate<string>(read)).toBe(guest)
      expect(await cookies()).toEqual([
        `bursar_renewal_${new URL(origin).port}`,
        'bursar_session',
        `bursar_session_${new URL(origin).port}`,
      ])
    }
    await waitForConsole(page, 'Guest')
    expect(await page.evaluate('document.cookie')).toBe('')
    expect(complaints).toEqual([])
  })

  it('explains when an address does not fit its channel', async () => {
    const { page } = await newVisit(browser(), origin)
    await page.goto('/sign-in')
    await page.getByText('Use a one-time code').click()
    const field = page.getByLabel(address, { exact: true })
    const send = async (text: string, words: string) => {
      await field.fill(text)
      await page.getByRole('button', { name: 'Send a code' }).click()
      await page.getByText(words).waitFor()
      expect(await field.getAttribute('aria-invalid')).toBe('true')
      expect(await page.evaluate('document.activeElement.id')).toBe('destination')
    }
    await send('+49 30 901820', 'This looks like a phone number. Choose “Phone”')
    await send('ada', 'This is not an e-mail address.')
    await page.locator('#code-start').getByLabel('Phone', { exact: true }).check()
    await send('ada@example.com', 'This looks like an e-mail address. Choose “E-mail”')
    await send('030 901820', 'Type the phone number with its country')
    await field.fill('+49 30 901820')
    await page.getByRole('button', { name: 'Send a code' }).click()
    await page.getByText('A code is on its way.').waitFor()
    expect(await field.getAttribute('aria-invalid')).toBe('false')
  })

  it('goes to an identity provider and returns, leaving no code in the URL', async () => {
    const { page, complaints } = await newVisit(browser(), origin)
    await page.goto('/sign-in')
    await page.getByRole('button', { name: 'Continue with Google' }).click()
    await page.getByRole('heading', { name: 'Sandbox identity provider' }).waitFor()
    await page.getByLabel('E-mail').fill(newMailbox('grace'))
    await page.getByLabel('Name').fill('Grace')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await waitForConsole(page, 'Grace')
    expect(page.url()).toBe(`${new URL(page.url()).origin}/`)
    expect(await page.evaluate('sessionStorage.length')).toBe(0)
    expect(complaints).toEqual([])
  })

  it('rejects a provider’s answer to a sign-in that was not started here', async () => {
    const { page } = await newVisit(browser(), origin)
    await page.goto('/sign-in/google?code=planted&state=planted')
    await page.getByText('This sign-in was not started here.').waitFor()
    expect(new URL(page.url()).search).toBe('')
    await page.getByRole('link', { name: 'All sign-in methods' }).click()
    await page.getByRole('heading', { name: 'Sign in to Bursar' }).waitFor()
  })
})
