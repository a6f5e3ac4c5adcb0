/** The console's page of schedules in a real browser: what will leave, a switch for each, and the states without any. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findBarriers } from './accessibility.ts'
import { findChromium } from './chromium.ts'
import { type ConsoleScene, openConsole, takePictures } from './console-scene.ts'
import type { Person } from './people.ts'

const executable = findChromium()

describe.skipIf(executable === undefined)('the page of schedules in Chromium', () => {
  let scene: ConsoleScene
  let owner: Person
  let page: Page
  beforeAll(async () => {
    scene = await openConsole()
    ;({ owner, page } = scene)
  }, 180_000)
  afterAll(async () => {
    await scene?.close()
  })

  const picture = (name: string) => takePictures(page, name)
  const make = async (amount: string, every: object) => {
    const input = { destination: `0x${'00'.repeat(18)}beef`, amount, token: 'USDC' }
    const answer = await owner.send('POST', '/api/schedules', { operation: 'wallets.transfer', input, every })
    expect(answer.status).toBe(200)
  }

  it('says that nothing is scheduled, and that the list did not load', async () => {
    await page.goto('/schedules')
    await page.getByText('Nothing is scheduled').waitFor()
    await picture('empty')
    await page.route('**/api/schedules?**', (route) => route.abort())
    await page.reload()
    await page.getByText('The list of schedules did not load').waitFor()
    await picture('failed')
    await page.unroute('**/api/schedules?**')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('Nothing is scheduled').waitFor()
    expect(await findBarriers(page, 'light')).toEqual([])
  }, 120_000)

  it('shows what will leave, and switches a schedule off, on and for good', async () => {
    await make('12.50', { unit: 'week', on: 1 })
    await make('800', { unit: 'month', on: 31 })
    const due = page.getByRole('region', { name: 'The next 30 days' })
    await expect.poll(() => due.getByText('12.50').count()).toBeGreaterThanOrEqual(4)
    await due.getByText('800').first().waitFor()
    await picture('ready')
    expect(await findBarriers(page, 'light')).toEqual([])
    const weekly = page.getByRole('switch', { name: /12\.50/ })
    expect(await weekly.isChecked()).toBe(true)
    await weekly.click()
    await expect.poll(() => due.getByText('12.50').count()).toBe(0)
    await expect.poll(() => weekly.isChecked()).toBe(false)
    await picture('paused')
    await weekly.click()
    await expect.poll(() => weekly.isChecked()).toBe(true)
    await page.getByRole('button', { name: /^End: .*12\.50/ }).click()
    await page.getByRole('region', { name: 'Ended' }).getByText('12.50').waitFor()
    const { body } = await owner.send('GET', '/api/schedules')
    expect(body.schedules).toMatchObject([{ status: 'active' }, { status: 'ended' }])
    await picture('ended')
  }, 120_000)
})
