/** The console under bad luck and bad company: lost answers, wrong clocks, other tabs, other people, hostile agents. */
import { createECDH, randomBytes } from 'node:crypto'
import type { Page } from 'playwright-core'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import {
  createAccount,
  expectVisible,
  findChromium,
  giveSession,
  newVisit,
  openSuiteBrowser,
  signInWithCode,
  waitForConsole,
} from './chromium.ts'
import { sharedGateway } from './gateway.ts'
import { newGuest, newMailbox, type Person, requestJson, signInByEmail } from './people.ts'

const executable = findChromium()
const payee = '0x71C7656EC7ab88b098defB751B7401B5f6d8976F'
const policy = {
  perTransaction: { max: '10' },
  dailyBudget: { max: '20' },
  categories: { allow: ['transfer'] },
  approval: { above: '2', ttlSec: 3600 },
}
const list = z.object({ entries: z.array(z.object({ amount: z.string(), direction: z.string() })) })

describe.skipIf(executable === undefined)('the console in trouble', () => {
  const origin = sharedGateway()
  const browser = openSuiteBrowser()
  let owner: Person
  let page: Page
  beforeEach(async () => {
    owner = await newGuest(origin)
    page = (await newVisit(browser(), at(''))).page
    await signIn(owner)
  })
  afterEach(async () => {
    await page.context().close()
  })

  const at = (path: string) => `${origin.replace('127.0.0.1', 'localhost')}${path}`
  const signIn = ({ token }: Person) => giveSession(page.context(), at(''), token)
  const dialog = () => page.getByRole('dialog')
  const newAgent = async (name: string) => {
    const scopes = ['wallets:read', 'wallets:transfer']
    const { body } = await owner.send('POST', '/api/developer/keys', { name, scopes, policy })
    return z.object({ id: z.string(), key: z.string() }).parse(body)
  }
  const sendAs = (key: string, method: string, path: string, body?: unknown) =>
    requestJson(origin, method, path, { body, headers: { authorization: `Bearer ${key}` } })
  const pay = (key: string, amount: string) =>
    sendAs(key, 'POST', '/api/wallets/transfer', { destination: payee, amount, signature: 'sandbox' })

  it('sends once when the answer was lost, the page reloaded and the button pressed again, with a passkey', async () => {
    await page.context().close()
    const visit = await newVisit(browser(), at(''))
    page = visit.page
    await visit.addAuthenticator()
    await createAccount(page, 'Ada')
    const wallet = z
      .object({ safeAddress: z.string() })
      .parse(await page.evaluate(`fetch('/api/wallets').then((answer) => answer.json())`))
    const faucet = { address: wallet.safeAddress, token: 'USDC', amount: '50' }
    await requestJson(origin, 'POST', '/sandbox/faucet', { body: faucet })

    await page.goto('/accounts/send')
    await page.getByLabel('To').fill(payee)
    await page.getByLabel('Amount').fill('7.25')
    let isPaid = false
    await page.route('**/api/wallets/transfer', async (route) => {
      if (!isPaid) await route.fetch()
      isPaid = true
      await route.abort()
    })
    const send = page.getByRole('button', { name: 'Send 7.25 USDC' })
    await send.click()
    await page.getByText('it is not known whether this was done').waitFor()
    await page.unroute('**/api/wallets/transfer')
    await page.reload()
    await page.getByLabel('To').fill(payee)
    await page.getByLabel('Amount').fill('7.25')
    await send.click()
    await page.getByRole('heading', { name: 'Sent 7.25 USDC' }).waitFor()
    await page.getByText('This is the payment that you began').waitFor()
    expect(
      await page.evaluate('Object.keys(localStorage).filter((name) => name.includes("payments"))'),
    ).toEqual([])
    const { entries } = list.parse(
      await page.evaluate(`fetch('/api/activity').then((answer) => answer.json())`),
    )
    expect(entries.filter(({ direction }) => direction === 'out').map(({ amount }) => amount)).toEqual([
      '7.25',
    ])
  }, 180_000)

  it('stops all agents although the list of agents did not load', async () => {
    const { key } = await newAgent('Runaway')
    await page.route('**/api/agents/keys?*', (route) => route.abort())
    await page.goto('/')
    await page.getByRole('button', { name: 'Stop all agents' }).click()
    await dialog()
      .getByRole('button', { name: /^Stop all agents/ })
      .click()
    await page.getByText('1 agent is stopped.').waitFor()
    expect((await pay(key, '1')).status).toBe(403)
  })

  it('counts the time to answer by the gateway’s clock, not by this device’s', async () => {
    const { key } = await newAgent('Shopper')
    const { body } = await pay(key, '3')
    await page.clock.setSystemTime(Date.now() + 3 * 3_600_000)
    await page.goto(`/approvals/${body.approvalId}`)
    await page.getByText(/^(59|60) min left|^1 h left/).waitFor()
    await page.getByRole('button', { name: 'Approve' }).click()
    await expectVisible(page.getByRole('heading', { name: 'Approved and completed' }))
  })

  it('keeps a request in sight however many an agent asks for and takes back', async () => {
    const [quiet, hostile] = [await newAgent('Quiet'), await newAgent('Hostile')]
    await pay(quiet.key, '3')
    for (let count = 0; count < 101; count += 1) {
      const { body } = await pay(hostile.key, `2.${String(count + 100)}`)
      await sendAs(hostile.key, 'DELETE', `/api/approvals/${body.approvalId}`)
    }
    await page.goto('/approvals')
    await page.getByRole('heading', { name: '1 waits for you' }).waitFor()
    await expectVisible(page.getByRole('link', { name: 'Review: send 3.00 USDC' }))
  })

  it('does not save rules over those that were changed in another tab', async () => {
    const { id } = await newAgent('Shopper')
    await page.goto(`/agents/${id}`)
    await page.getByRole('button', { name: 'Change policy' }).click()
    const tighter = { ...policy, dailyBudget: { max: '11' } }
    await owner.send('PATCH', `/api/agents/keys/${id}`, { policy: tighter })
    await page.getByLabel('At a time, in US dollars').fill('9')
    await page.getByText('These rules were changed elsewhere').waitFor()
    // The gateway refuses it, not the page alone: its reads may be late.
    const saving = page.waitForResponse((answer) => answer.request().method() === 'PATCH')
    await page.getByRole('button', { name: 'Save' }).click()
    expect((await saving).status()).toBe(409)
    const read = async () => (await owner.send('GET', `/api/agents/keys/${id}`)).body.policy
    expect(await read()).toMatchObject({ perTransaction: { max: '10' }, dailyBudget: { max: '11' } })
    await page.getByRole('button', { name: 'Show what holds now' }).click()
    await page.getByLabel('At a time, in US dollars').fill('9')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved. Version 3').waitFor()
    expect(await read()).toMatchObject({ perTransaction: { max: '9' }, dailyBudget: { max: '11' } })
  })

  it('shows what is unseen in an agent’s name, without what turns its direction, and revokes it without typing that', async () => {
    const { id, key } = await newAgent('Zero\u200Bwidth\u202Ename')
    await page.goto('/')
    await page.getByRole('link', { name: /Zero\uFFFDwidthname/ }).waitFor()
    await page.goto(`/agents/${id}`)
    await page.getByRole('button', { name: /^Revoke/ }).click()
    await dialog().getByRole('textbox').fill('revoke')
    await dialog().getByRole('button', { name: 'Revoke for good' }).click()
    await page.getByText('This agent was revoked.').waitFor()
    expect((await pay(key, '1')).status).toBe(401)
  })

  it('says a failure inside the dialog that it happened in', async () => {
    await page.goto('/')
    await page.getByRole('button', { name: /Add sandbox money/ }).click()
    await dialog().getByLabel('Amount').fill('1,5')
    await dialog().getByText('An amount such as 12.50.').waitFor()
    const add = dialog().getByRole('button', { name: /^Add / })
    expect(await add.isDisabled()).toBe(true)
    await dialog().getByLabel('Amount').fill('999999999999')
    await add.click()
    await dialog()
      .locator('.field__error', { hasText: /^Must .*\.$/ })
      .waitFor()
  })

  it('says what is wrong with an entry at its field', async () => {
    await page.goto('/accounts')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await dialog().getByLabel('Name of the holder').fill('Ada')
    await dialog().getByLabel('Country').fill('DE')
    const iban = dialog().getByLabel('IBAN')
    await iban.fill('DE00500105175407324931')
    await dialog().getByRole('button', { name: 'Add', exact: true }).click()
    await expect.poll(() => iban.getAttribute('aria-invalid')).toBe('true')
    const words = await page.locator(`[id="${await iban.getAttribute('aria-describedby')}"]`).textContent()
    expect(words).toMatch(/^[A-Z][^/`"]+\.$/)
    expect(await page.evaluate('document.activeElement.id')).toBe(await iban.getAttribute('id'))
    await iban.fill('DE89370400440532013000')
    expect(await iban.getAttribute('aria-invalid')).toBeNull()
    await dialog().getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByText('The recipient is added.').waitFor()
  })

  it('keeps what was entered when the session ends, and goes on after a sign-in in another tab', async () => {
    const mailbox = newMailbox('ada')
    const person = await signInByEmail(origin, mailbox)
    await signIn(person)
    await page.goto('/security')
    await page.getByRole('button', { name: 'Change', exact: true }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('Ada Lovelace')
    await page.context().clearCookies()
    await dialog().getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Your session ended' }).waitFor()
    await page.keyboard.press('Escape')
    expect(new URL(page.url()).pathname).toBe('/security')
    expect(await page.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('Ada Lovelace')

    const [tab] = await Promise.all([
      page.context().waitForEvent('page'),
      page.getByRole('link', { name: 'Sign in in another tab' }).click(),
    ])
    // It is said for six seconds: on a slow machine, the other tab may take longer to show its console.
    const said = page.getByText('You are signed in again.').waitFor({ timeout: 120_000 })
    await Promise.all([said, signInWithCode(tab, origin, mailbox)])
    await tab.close()
    await dialog().getByRole('button', { name: 'Save' }).click()
    await page.getByText('Your name is changed.').waitFor()
    await waitForConsole(page, 'Ada Lovelace')
    // Its stream of events goes on, too.
    await page.getByText('Live', { exact: true }).waitFor()
  }, 180_000)

  it('starts again what was stopped together, and leaves what was stopped before', async () => {
    const [resting, shopper, reader] = [
      await newAgent('Resting'),
      await newAgent('Shopper'),
      await newAgent('Reader'),
    ]
    await owner.send('POST', `/api/agents/keys/${resting.id}/pause`, {})
    await page.goto('/')
    await page.getByRole('button', { name: 'Stop all agents' }).click()
    await dialog()
      .getByRole('button', { name: /^Stop all 2 agents/ })
      .click()
    await page.getByText('2 agents are stopped.').waitFor()
    await page.getByRole('button', { name: 'Stop all agents' }).click()
    await dialog().getByRole('button', { name: 'Start again' }).click()
    const box = (name: string) => dialog().getByRole('checkbox', { name: new RegExp(name) })
    expect([await box('Resting').isChecked(), await box('Shopper').isChecked()]).toEqual([false, true])
    await dialog().getByText('$20.00 left today').first().waitFor()
    await dialog().getByRole('button', { name: 'Start 2 agents' }).click()
    await page.getByText('2 agents are started.').waitFor()
    const statuses = [resting, shopper, reader].map(async ({ key }) => (await pay(key, '1')).status)
    expect(await Promise.all(statuses)).toEqual([403, 200, 200])
  })

  it('writes numbers in the digits of its fields, whatever the language', async () => {
    const context = await browser().newContext({ baseURL: at(''), locale: 'ar-EG' })
    await giveSession(context, at(''), owner.token)
    const other = await context.newPage()
    await other.goto('/')
    await other.getByText('1,000.00').first().waitFor()
    expect(await other.locator('body').textContent()).not.toMatch(/[\u0660-\u0669]/)
    await context.close()
  })

  it('keeps the whole request readable above its buttons on a short screen', async () => {
    const { key } = await newAgent('Shopper')
    const { body } = await pay(key, '3')
    await page.setViewportSize({ width: 640, height: 400 })
    await page.goto(`/approvals/${body.approvalId}`)
    const approve = page.getByRole('button', { name: 'Approve' })
    await approve.waitFor()
    const payeeBox = await page.locator('.address').boundingBox()
    const buttonBox = await approve.boundingBox()
    expect((payeeBox?.y ?? 0) + (payeeBox?.height ?? 0)).toBeLessThan(buttonBox?.y ?? 0)
  })

  it('begins anew when somebody else signed in in another tab', async () => {
    await page.goto('/accounts/send')
    await page.getByLabel('Amount').fill('12')
    await newAgent('Of the first')
    owner = await newGuest(origin)
    await newAgent('Of the second')
    await signIn(owner)
    await page.evaluate(`document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))`)
    await page.getByRole('link', { name: /Of the second/ }).waitFor()
    expect(await page.getByText('Of the first').count()).toBe(0)
  })

  it('ends the messages of the browsers that it signs out', async () => {
    const mailbox = newMailbox('ada')
    const other = await signInByEmail(origin, mailbox)
    const own = await signInByEmail(origin, mailbox)
    const keys = {
      p256dh: createECDH('prime256v1').generateKeys('base64url'),
      auth: randomBytes(16).toString('base64url'),
    }
    const subscription = { endpoint: 'https://push.example.com/send/1', keys }
    await other.send('POST', '/api/notifications/subscriptions', subscription)
    await signIn(own)
    await page.goto('/security')
    await page.getByText('Another browser gets them too').waitFor()
    await page.getByRole('button', { name: 'Sign out all others' }).click()
    await page.getByText('All others are signed out.').waitFor()
    const { body } = await own.send('GET', '/api/notifications/subscriptions')
    expect(body.subscriptions).toEqual([])
    expect((await other.send('GET', '/api/wallets')).status).toBe(401)
  })

  it('goes on with push messages after a new sign-in by the same person, and not once they were removed', async () => {
    // This browser reaches no push service: its subscription is played, everything else is real.
    const keys = {
      p256dh: createECDH('prime256v1').generateKeys('base64url'),
      auth: randomBytes(16).toString('base64url'),
    }
    const json = JSON.stringify({ endpoint: 'https://push.example.com/send/2', keys })
    await page.context().grantPermissions(['notifications'], { origin: at('') })
    await page.addInitScript(`{
      const decode = (text) => Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (one) => one.charCodeAt(0)).buffer
      const subscription = {
        toJSON: () => (${json}),
        unsubscribe: async () => localStorage.removeItem('subscribed'),
        get options() {
          return { applicationServerKey: decode(localStorage.getItem('subscribed')) }
        },
      }
      const pushManager = {
        getSubscription: async () => (localStorage.getItem('subscribed') ? subscription : null),
        subscribe: async ({ applicationServerKey }) => (localStorage.setItem('subscribed', applicationServerKey), subscription),
      }
      const value = async () => ({ pushManager, update: async () => undefined })
      for (const name of ['getRegistration', 'register']) Object.defineProperty(navigator.serviceWorker, name, { value })
      Notification.requestPermission = async () => 'granted'
    }`)
    const mailbox = newMailbox('grace')
    const first = await signInByEmail(origin, mailbox)
    await signIn(first)
    await page.goto('/security')
    const here = page.getByLabel('Message in this browser')
    await here.click()
    await expect.poll(() => here.isChecked()).toBe(true)
    const second = await signInByEmail(origin, mailbox)
    const ids = async () => {
      const { body } = await second.send('GET', '/api/notifications/subscriptions')
      return z
        .array(z.object({ id: z.string() }))
        .parse(body.subscriptions)
        .map(({ id }) => id)
    }
    const [before] = await ids()
    await second.send('DELETE', '/api/auth/sessions/others')
    expect([before === undefined, await ids()]).toEqual([false, []])
    await signIn(second)
    // The page of the ended session may be leaving by itself just now.
    await vi.waitFor(() => page.goto('/security'), 20_000)
    await expect.poll(() => here.isChecked()).toBe(true)
    const [after, ...more] = await ids()
    expect([more, after === before]).toEqual([[], false])
    // A gateway whose key was replaced gets a subscription with its new one.
    const subscribedKey = () => page.evaluate(`localStorage.getItem('subscribed')`)
    const { publicKey } = (await second.send('GET', '/api/notifications/subscriptions')).body
    expect(await subscribedKey()).toBe(publicKey)
    await page.evaluate(`localStorage.setItem('subscribed', btoa('another key'))`)
    await page.reload()
    await here.waitFor()
    await expect.poll(subscribedKey).toBe(publicKey)
    await expect.poll(() => here.isChecked()).toBe(true)
    expect(await ids()).toHaveLength(1)
    const [renewed] = await ids()
    await second.send('DELETE', `/api/notifications/subscriptions/${renewed}`)
    await page.reload()
    await here.waitFor()
    await expect.poll(() => page.evaluate(`localStorage.getItem('subscribed')`)).toBe(null)
    expect([await here.isChecked(), await ids()]).toEqual([false, []])
  })

  it('ends the push messages of whoever was here before', async () => {
    // This browser reaches no push service: its subscription is played, everything else is real.
    await page.context().grantPermissions(['notifications'], { origin: at('') })
    await page.addInitScript(`{
      const subscription = {
        options: { applicationServerKey: null },
        unsubscribe: async () => {
          localStorage.setItem('ended', String(Number(localStorage.getItem('ended')) + 1))
          localStorage.removeItem('subscribed')
        },
      }
      const getSubscription = async () => (localStorage.getItem('subscribed') ? subscription : null)
      Object.defineProperty(navigator.serviceWorker, 'getRegistration', {
        value: async () => ({ pushManager: { getSubscription } }),
      })
    }`)
    const readEnded = () => page.evaluate(`localStorage.getItem('ended')`)
    await page.goto('/')
    await waitForConsole(page)
    expect(await readEnded()).toBe(null)
    // One that an earlier person left behind.
    await page.evaluate(`localStorage.setItem('subscribed', 'yes')`)
    await page.goto('/')
    await expect.poll(readEnded).toBe('1')
    // Signing out ends one too, and the way back shows nothing.
    await page.goto('/security')
    await page.getByRole('button', { name: 'Sign out' }).first().waitFor()
    await page.evaluate(`localStorage.setItem('subscribed', 'yes')`)
    await page.getByRole('button', { name: 'Sign out' }).first().click()
    await page.waitForURL(/sign-in/)
    expect(await readEnded()).toBe('2')
    await page.goBack()
    await page.waitForURL(/sign-in/)
    expect(await page.getByText('Everything you have').count()).toBe(0)
  })
})
