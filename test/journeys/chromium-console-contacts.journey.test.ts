/** The console's page of contacts in a real browser: its states, adding, changing and removing one, and sending to it. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findBarriers } from './accessibility.ts'
import { findChromium } from './chromium.ts'
import { type ConsoleScene, openConsole, takePictures } from './console-scene.ts'
import type { Gateway } from './gateway.ts'
import { type Person, requestJson } from './people.ts'

const executable = findChromium()
const [first, second] = [`0x${'1'.repeat(40)}`, `0x${'2'.repeat(40)}`]

describe.skipIf(executable === undefined)('the page of contacts in Chromium', () => {
  let scene: ConsoleScene
  let gateway: Gateway
  let owner: Person
  let page: Page
  beforeAll(async () => {
    scene = await openConsole()
    ;({ gateway, owner, page } = scene)
  }, 180_000)
  afterAll(async () => {
    await scene?.close()
  })

  const picture = (name: string) => takePictures(page, name)

  it('says that there are none, and that the list did not load', async () => {
    await page.goto('/contacts')
    await page.getByText('No contacts yet').waitFor()
    await picture('empty')
    await page.route('**/api/contacts', (route) => route.abort())
    await page.reload()
    await page.getByText('The list of contacts did not load').waitFor()
    await picture('failed')
    await page.unroute('**/api/contacts')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('No contacts yet').waitFor()
    expect(await findBarriers(page, 'light')).toEqual([])
  }, 120_000)

  it('adds, changes and removes a contact', async () => {
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Add a contact' }).click()
    await dialog.getByLabel('Name').fill('Alice Cooper')
    await dialog.getByLabel('Address').fill(first)
    await picture('adding')
    expect(await findBarriers(page, 'light')).toEqual([])
    await dialog.getByRole('button', { name: 'Add' }).click()
    await page.getByText('The contact is added.').waitFor()
    await page.getByRole('button', { name: 'Add a contact' }).click()
    await dialog.getByLabel('Name').fill('alice  cooper')
    await dialog.getByRole('button', { name: 'Add' }).click()
    await dialog.getByText('A contact has this name').waitFor()
    await dialog.getByLabel('Name').fill('<b>Bob</b> & Sons')
    await dialog.getByRole('button', { name: 'Add' }).click()
    await page.getByText('<b>Bob</b> & Sons').waitFor()
    await picture('ready')
    expect(await findBarriers(page, 'light')).toEqual([])
    await page.getByRole('button', { name: 'Change Alice Cooper' }).click()
    await dialog.getByLabel('Address').fill(second)
    await dialog.getByText('they pay what they showed, or nobody').waitFor()
    await picture('changing')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('changed').first().waitFor()
    const { body } = await owner.send('GET', '/api/contacts')
    expect(body.contacts).toMatchObject([{ name: 'Alice Cooper', addresses: [{ address: second }] }, {}])
    await page.getByRole('button', { name: /^Remove .*Bob/ }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await expect.poll(() => page.getByText('<b>Bob</b> & Sons').count()).toBe(0)
  }, 120_000)

  it('offers contacts where money is sent, and names them where it went', async () => {
    await page.goto('/accounts/send')
    await page.getByLabel('Contact').selectOption({ label: 'Alice Cooper' })
    expect(await page.getByLabel('To', { exact: true }).inputValue()).toBe(second)
    await page.getByLabel('Amount').fill('1.25')
    await picture('sending')
    expect(await findBarriers(page, 'light')).toEqual([])
    await page.getByRole('button', { name: /^Send 1\.25/ }).click()
    await page.getByRole('heading', { name: /Sent|On its way/ }).waitFor()
    await page.goto('/activity')
    await page.getByText('Alice Cooper').first().waitFor()
  }, 120_000)

  it('names the contact of a request, and says when it is another payee by now', async () => {
    const { body: key } = await owner.send('POST', '/api/developer/keys', {
      name: 'Payer',
      scopes: ['wallets:transfer'],
      policy: {
        perTransaction: { max: '50' },
        dailyBudget: { max: '100' },
        categories: { allow: ['transfer'] },
        approval: { above: '1', ttlSec: 3_600 },
      },
    })
    const { body: asked } = await requestJson(gateway.origin, 'POST', '/api/wallets/transfer', {
      body: { destination: 'contact:alice cooper', amount: '5', token: 'USDC' },
      headers: { authorization: `Bearer ${String(key.key)}` },
    })
    await page.goto(`/approvals/${String(asked.approvalId)}`)
    await page.getByText('Alice Cooper').first().waitFor()
    await picture('asking')
    const { body } = await owner.send('GET', '/api/contacts?name=Alice%20Cooper')
    const [{ id }] = body.contacts as [{ id: string }]
    await owner.send('PATCH', `/api/contacts/${id}`, { addresses: [{ address: first }] })
    await page.getByText('Approving pays nobody').waitFor()
    await picture('changed')
    expect(await findBarriers(page, 'light')).toEqual([])
  }, 120_000)
})
