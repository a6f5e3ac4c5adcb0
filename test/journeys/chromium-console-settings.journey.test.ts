/** Developers, Compliance and Operator in a real browser, as their people use them. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findBarriers } from './accessibility.ts'
import { findChromium, newVisit, openBrowser, signInWithCode, type Visit } from './chromium.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { lastCodeTo, newGuest, type Person, requestJson, signInByEmail } from './people.ts'
import { type Receiver, startReceiver } from './webhook-receiver.ts'

const executable = findChromium()
/** The sandbox reviews payments to addresses with this end. */
const suspicious = `0x${'2'.repeat(36)}8888`

describe.skipIf(executable === undefined)('the console’s settings in Chromium', () => {
  let gateway: Gateway
  let browser: Browser
  let receiver: Receiver
  let visit: Visit
  let page: Page
  let other: Person
  beforeAll(async () => {
    gateway = await startGateway({ CHAIN: 'simulated', RATE_MUTATIONS: '10000/60' })
    browser = await openBrowser()
    receiver = await startReceiver()
    other = await newGuest(gateway.origin)
    visit = await newVisit(browser, gateway.origin)
    page = visit.page
    await page.goto('/sign-in?next=%2Fdevelopers')
    await signInWithCode(page, gateway.origin, 'ada@example.com')
  }, 180_000)
  afterAll(async () => {
    await browser?.close()
    await receiver?.close()
    await gateway?.stop()
  })

  const region = (name: string) => page.getByRole('region', { name })
  const dialog = () => page.getByRole('dialog')
  const press = (name: string | RegExp) => page.getByRole('button', { name }).first().click()
  const pressInDialog = (name: string) => dialog().getByRole('button', { name, exact: true }).click()

  it('makes a key that is shown once, stops it and revokes it', async () => {
    expect(new URL(page.url()).pathname).toBe('/developers')
    await press('New key')
    await dialog().getByLabel('Name').fill('Nightly report')
    await dialog().getByLabel('Send stablecoins').check()
    await dialog().getByLabel('At most a payment').fill('3')
    await pressInDialog('Make the key')
    const secret = (await dialog().locator('code').textContent()) ?? ''
    expect(secret).toMatch(/^bsk_/)
    await pressInDialog('I have kept it')
    await expect.poll(() => page.content()).not.toContain(secret)
    const read = () =>
      requestJson(gateway.origin, 'GET', '/api/wallets', { headers: { authorization: `Bearer ${secret}` } })
    expect((await read()).status).toBe(200)
    // The event of the key came by the stream.
    await region('Events').getByText('key.created').first().waitFor()

    await press('Stop the key Nightly report')
    await region('API keys').getByText('Stopped').waitFor()
    await press('Start the key Nightly report')
    await page.getByRole('button', { name: 'Stop the key Nightly report' }).waitFor()
    await press('Revoke the key Nightly report')
    await pressInDialog('Revoke for good')
    await page.getByText('The key is revoked.').waitFor()
    await expect.poll(async () => (await read()).status).toBe(401)
  }, 180_000)

  it('adds a webhook, tests it, shows its deliveries, and replaces its secret', async () => {
    await press('Add a webhook')
    await dialog().getByLabel('Address').fill(receiver.url)
    await dialog().getByLabel('Name').fill('Bookkeeping')
    await pressInDialog('Add the webhook')
    const secret = (await dialog().locator('code').textContent()) ?? ''
    expect(secret).toMatch(/^whsec_/)
    receiver.trust(secret)
    await pressInDialog('I have kept it')
    const hook = region('Bookkeeping')
    await hook.getByRole('button', { name: 'Send a test' }).click()
    await expect
      .poll(() => receiver.received.map(({ event }) => event.type), { timeout: 20_000 })
      .toContain('ping')
    const delivery = hook.locator('details', { hasText: 'ping' }).first()
    await delivery.getByText('Delivered').waitFor()
    await delivery.locator('summary').click()
    const before = receiver.received.length
    await delivery.getByRole('button', { name: 'Send it again' }).click()
    await expect.poll(() => receiver.received.length, { timeout: 20_000 }).toBeGreaterThan(before)

    await hook.getByRole('button', { name: 'New secret' }).click()
    const next = (await dialog().locator('code').textContent()) ?? ''
    expect([next.startsWith('whsec_'), next === secret]).toEqual([true, false])
    await pressInDialog('I have kept it')
    await hook.getByRole('button', { name: 'Pause' }).click()
    await hook.getByText('Paused', { exact: true }).waitFor()
    await hook.getByRole('button', { name: 'Go on' }).click()
    await hook.getByText('Active').waitFor()
    await hook.getByRole('button', { name: 'Delete' }).click()
    await pressInDialog('Delete')
    await page.getByText('The webhook is deleted.').waitFor()
    await expect.poll(() => hook.count()).toBe(0)
  }, 180_000)

  it('verifies an identity, asking only for what is missing, and erases the data', async () => {
    await page.goto('/compliance')
    await page.getByLabel('Given names').fill('Ada')
    await page.getByLabel('Family name').fill('Lovelace')
    await press('Send for review')
    await page.getByText(/^Missing: Date of birth, Country, Address$/).waitFor()
    expect(await page.getByLabel('Given names').count()).toBe(0)
    await page.getByLabel('Date of birth').fill('1990-12-10')
    await page.getByLabel('Country').fill('jp')
    await page.getByLabel('Street and number').fill('Chiyoda 1-1')
    await page.getByLabel('City').fill('Tokyo')
    await press('Send for review')
    await page.getByText('You are verified.').waitFor()
    // A bank or broker may ask for more; details that are missing can be added.
    await region('Identity verification').getByText('Basic', { exact: true }).first().click()
    await press('Add e-mail, phone or address')
    expect(await page.getByRole('button', { name: 'Keep them' }).isDisabled()).toBe(true)
    await page.getByLabel('E-mail').fill('ada@example.com')
    await page.getByLabel('Phone', { exact: true }).fill('+49 151 12345678')
    await press('Keep them')
    await page.getByText(/^Your details are kept/).waitFor()
    await region('Identity verification').getByText('Full', { exact: true }).first().click()
    await region('Identity verification').getByText('Basic', { exact: true }).first().waitFor()
    // The next level asks only for what it needs beyond.
    await page.getByLabel('Reference').waitFor()
    expect(await page.getByLabel('Given names').count()).toBe(0)

    await press('Erase my personal data')
    const erase = dialog().getByRole('button', { name: 'Erase for good' })
    expect(await erase.isDisabled()).toBe(true)
    await dialog().getByLabel(/^Type/).fill('erase')
    await erase.click()
    await page.getByText('Your personal data is erased.').waitFor()
  }, 180_000)

  it('shows the operator’s page to administrators only', async () => {
    await page.goto('/operator')
    await page.getByRole('heading', { name: 'For administrators only' }).waitFor()
    expect(await page.getByRole('link', { name: 'Operator' }).count()).toBe(0)
    const { origin } = new URL(page.url())
    const answer = await page.request.post(`${origin}/sandbox/admin`, { data: {}, headers: { origin } })
    expect(answer.status()).toBe(200)
    await page.reload()
    await page.getByRole('heading', { name: 'Operator' }).waitFor()
  })

  it('releases a payment in review, which may then be sent', async () => {
    const pay = () =>
      other.send('POST', '/api/wallets/transfer', {
        destination: suspicious,
        amount: '2',
        signature: 'sandbox',
      })
    expect(await pay()).toMatchObject({ status: 403, body: { screening: { result: 'review' } } })
    await page.reload()
    const reviews = region('In review')
    // Money is approved for this address: it stands in full.
    await expect.poll(() => reviews.locator('.address').textContent()).toBe(suspicious)
    await reviews.getByRole('button', { name: 'Release' }).click()
    expect(await dialog().getByRole('button', { name: 'Release' }).isDisabled()).toBe(true)
    await dialog().getByLabel('Reason').fill('The invoice was shown.')
    await pressInDialog('Release')
    await reviews.getByText('Nothing waits.').waitFor()
    expect(await pay()).toMatchObject({ status: 200 })
  }, 180_000)

  it('shows a deposit in review from its sender to the account, and credits it', async () => {
    const { body } = await other.send('POST', '/api/banking', { currency: 'USD' })
    await other.send('POST', '/sandbox/deposits', { accountId: body.id, amount: '120', from: suspicious })
    await page.reload()
    const facts = region('In review').locator('dd')
    await expect.poll(() => facts.first().textContent()).toBe(suspicious)
    expect(await facts.nth(1).textContent()).toBe(other.accountId)
    await region('In review').getByRole('button', { name: 'Block' }).click()
    await dialog().getByLabel('Reason').fill('A reason to block.')
    await dialog().getByRole('button', { name: 'Cancel' }).click()
    await region('In review').getByRole('button', { name: 'Release' }).click()
    await dialog().getByRole('heading', { name: 'Release: the deposit of 120.00 USD' }).waitFor()
    expect(await dialog().getByLabel('Reason').inputValue()).toBe('')
    await dialog().getByLabel('Reason').fill('The sender is known.')
    await pressInDialog('Release')
    await page.getByText('The deposit is credited.').waitFor()
    await region('In review').getByText('Nothing waits.').waitFor()
  }, 180_000)

  it('switches a rail off and on', async () => {
    const rail = page.getByRole('switch', { name: 'Transfers' })
    const pay = () =>
      other.send('POST', '/api/wallets/transfer', {
        destination: `0x${'3'.repeat(40)}`,
        amount: '1',
        signature: 'sandbox',
      })
    await rail.click()
    await dialog().getByLabel('Reason').fill('The chain is slow.')
    await pressInDialog('Switch it off')
    await page.getByText('1 rail off').waitFor()
    expect(await rail.isChecked()).toBe(false)
    expect((await pay()).body).toMatchObject({ code: 'rail_disabled' })
    await rail.click()
    await expect.poll(() => rail.isChecked()).toBe(true)
    await expect.poll(async () => (await pay()).status, { timeout: 20_000 }).toBe(200)
  }, 180_000)

  it('finds an account, locks it and unlocks it', async () => {
    await page.getByLabel('Search by name or id').fill(other.accountId)
    const found = region('Accounts').getByRole('listitem')
    await expect.poll(() => found.count()).toBe(1)
    await found.getByRole('button', { name: /^Lock/ }).click()
    await pressInDialog('Lock the account')
    await found.getByText('Locked').waitFor()
    expect((await other.send('GET', '/api/wallets')).status).toBe(423)
    await found.getByRole('button', { name: /^Unlock/ }).click()
    await page.getByText('The account is unlocked.').waitFor()
    await found.getByRole('button', { name: /^Lock/ }).waitFor()
  }, 180_000)

  it('unlocks a person who has proved to own an account that an administrator locked', async () => {
    const mailbox = 'locked-out@example.com'
    const { accountId } = await signInByEmail(gateway.origin, mailbox)
    const { origin } = new URL(page.url())
    const lock = `${origin}/api/admin/accounts/${accountId}/lock`
    expect((await page.request.post(lock, { data: {}, headers: { origin } })).status()).toBe(200)

    const { page: outside } = await newVisit(browser, gateway.origin)
    await outside.goto('/sign-in#recovery')
    await outside.getByLabel('Your account’s e-mail address or phone number').fill(mailbox)
    await outside.getByRole('button', { name: 'Send a recovery code' }).click()
    await outside.getByText('a code is on its way').waitFor()
    await outside.getByLabel('Code from the message').fill(await lastCodeTo(gateway.origin, mailbox))
    await outside.getByRole('button', { name: 'Recover with the code' }).click()
    await outside.getByText('You are recognized as the owner. An administrator locked this account').waitFor()
    expect(await outside.getByRole('button', { name: 'Recover with the code' }).isVisible()).toBe(false)
    expect(await outside.context().cookies()).toEqual([])

    await page.reload()
    await region('In review').getByText('a code to their address').waitFor()
    expect(await region('In review').locator('dd').first().textContent()).toBe(accountId)
    await region('In review').getByRole('button', { name: 'Unlock' }).click()
    await dialog().getByLabel('Reason').fill('Spoke to the owner.')
    await pressInDialog('Unlock')
    await page.getByText('The account is unlocked, and its keys are paused.').waitFor()
    await region('In review').getByText('Nothing waits.').waitFor()
    const found = await page.request.get(`${origin}/api/admin/accounts?search=${accountId}`)
    expect(await found.json()).toMatchObject({ accounts: [{ id: accountId, locked: false }] })
  }, 180_000)

  it.each(['light', 'dark'] as const)(
    'is accessible and fits every width in %s',
    async (colorScheme) => {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      for (const width of [390, 1280]) {
        await page.setViewportSize({ width, height: 900 })
        for (const path of ['/developers', '/compliance', '/operator']) {
          await page.goto(path)
          await page.getByRole('heading', { level: 1 }).waitFor()
          await expect.poll(() => page.locator('[aria-busy="true"]').count()).toBe(0)
          expect([path, width, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([
            path,
            width,
            width,
          ])
          expect([path, width, await findBarriers(page, colorScheme)]).toEqual([path, width, []])
        }
      }
    },
    120_000,
  )

  it('says nothing in the browser’s console', () => {
    expect(visit.complaints).toEqual([])
  })
})
