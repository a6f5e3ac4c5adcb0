/** Home in a real browser: what all agents spent, by payee and category, and the budgets that run out soon. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findBarriers } from './accessibility.ts'
import { findChromium } from './chromium.ts'
import { type ConsoleScene, openConsole, takePictures } from './console-scene.ts'
import type { Gateway } from './gateway.ts'
import { type Person, requestJson } from './people.ts'

const executable = findChromium()

describe.skipIf(executable === undefined)('spending on Home in Chromium', () => {
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

  it('shows what agents spent by payee and category, and tells which budget runs out', async () => {
    const address = `0x${'1'.repeat(40)}`
    await owner.send('POST', '/api/contacts', { name: 'Alice Cooper', addresses: [{ address }] })
    const { body: key } = await owner.send('POST', '/api/developer/keys', {
      name: 'Payer',
      scopes: ['wallets:transfer'],
      policy: {
        perTransaction: { max: '10' },
        dailyBudget: { max: '10' },
        categories: { allow: ['transfer'] },
      },
    })
    const pay = async (destination: string, amount: string) => {
      const { status } = await requestJson(gateway.origin, 'POST', '/api/wallets/transfer', {
        body: { destination, amount, token: 'USDC' },
        headers: { authorization: `Bearer ${String(key.key)}` },
      })
      expect(status).toBe(200)
    }
    await page.goto('/')
    const spent = page.getByRole('region', { name: 'What agents spent' })
    await spent.getByText('Nothing yet').waitFor()
    await pay('contact:Alice Cooper', '6.50')
    await pay(`0x${'2'.repeat(40)}`, '2')
    await page.reload()
    await spent.getByText('$8.50').first().waitFor()
    await spent.getByText('Alice Cooper').waitFor()
    await spent.getByText('Transfers').waitFor()
    const low = page.getByRole('region', { name: 'Running out' })
    await low.getByText('$1.50 left today').waitFor()
    await low.getByText('85 % used').waitFor()
    await picture('home')
    expect(await findBarriers(page, 'light')).toEqual([])
    await spent.getByRole('button', { name: 'Last month' }).click()
    await spent.getByText('Nothing yet').waitFor()
    await page.route('**/api/statements/**', (route) => route.abort())
    await page.reload()
    await spent.getByText('What agents spent did not load').waitFor()
  }, 120_000)
})
