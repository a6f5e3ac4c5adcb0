/** Requests for money in a real browser: asking, the link with its code, the payer's page in each state, and canceling. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { findBarriers } from './accessibility.ts'
import { findChromium } from './chromium.ts'
import { type ConsoleScene, openConsole, takePictures } from './console-scene.ts'
import type { Gateway } from './gateway.ts'
import { newGuest, type Person } from './people.ts'

const executable = findChromium()
const listed = z.object({ requests: z.array(z.looseObject({ requestId: z.string(), url: z.url() })) })

describe.skipIf(executable === undefined)('requests for money in Chromium', () => {
  let scene: ConsoleScene
  let gateway: Gateway
  let owner: Person
  let page: Page
  beforeAll(async () => {
    scene = await openConsole({ RATE_PAY_PAGES: '1000/60' })
    ;({ gateway, owner, page } = scene)
  }, 180_000)
  afterAll(async () => {
    await scene?.close()
  })

  const picture = (name: string) => takePictures(page, `requests-${name}`)
  const readUrls = async () => {
    const { requests } = listed.parse((await owner.send('GET', '/api/requests')).body)
    return requests.map(({ url }) => url)
  }
  const open = async (url: string, name: string) => {
    await page.goto(url.replace(gateway.origin, new URL(page.url()).origin))
    await picture(name)
    for (const theme of ['light', 'dark'] as const) expect(await findBarriers(page, theme)).toEqual([])
  }

  it('asks for money, and shows the link with its code', async () => {
    await page.goto('/accounts')
    await page.getByText('No requests yet').waitFor()
    await page.getByRole('button', { name: 'Request money' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Amount').fill('12.5')
    await dialog.getByLabel('What it is for').fill('<b>Invoice</b> 12')
    await dialog.getByLabel('Your name on the page').fill('Ada’s Shop')
    await picture('asking')
    expect(await findBarriers(page, 'light')).toEqual([])
    await dialog.getByRole('button', { name: 'Make the link' }).click()
    await dialog.getByRole('img', { name: 'Code to scan' }).waitFor()
    await picture('made')
    expect(await findBarriers(page, 'light')).toEqual([])
    await page.keyboard.press('Escape')
    await page.getByText('<b>Invoice</b> 12').waitFor()
  }, 120_000)

  it('shows a payer the page, and the owner what arrived', async () => {
    const [url = ''] = await readUrls()
    await open(url, 'page-open')
    await page.getByRole('heading', { name: 'Pay 12.5 USDC' }).waitFor()
    await page.getByText('<b>Invoice</b> 12').waitFor()
    const { body } = await owner.send('GET', '/api/wallets')
    const payer = await newGuest(gateway.origin)
    await payer.send('POST', '/api/wallets/transfer', {
      destination: body.safeAddress,
      amount: '12.5',
      token: 'USDC',
      signature: 'sandbox',
    })
    await page.goto('/accounts')
    await page.getByText('Paid', { exact: true }).first().waitFor()
    await picture('list')
    await page.getByRole('button', { name: 'Show the request for 12.5' }).click()
    await page.getByRole('dialog').getByText('Transfer').waitFor()
    await picture('paid')
    expect(await findBarriers(page, 'light')).toEqual([])
    await open(url, 'page-paid')
    await page.getByText('Nothing is left to pay').waitFor()
  }, 120_000)

  it('is canceled, and its page says so', async () => {
    await owner.send('POST', '/api/requests', { amount: '3', memo: 'Wrong' })
    await page.goto('/accounts')
    await page.getByRole('button', { name: 'Show the request for 3' }).click()
    await page.getByRole('button', { name: 'It was paid, but not noticed' }).click()
    await page.getByText('Nothing in USDC has arrived').waitFor()
    await page.getByRole('button', { name: 'Cancel the request' }).click()
    await page.getByText('The request is canceled.').waitFor()
    const [url = ''] = await readUrls()
    await open(url, 'page-canceled')
    await page.getByText('Do not pay it').waitFor()
    await open(`${gateway.origin}/pay/${'x'.repeat(24)}`, 'page-none')
    await page.getByRole('heading', { name: 'There is no such request' }).waitFor()
  }, 120_000)
})
