/** Converting a stablecoin in the console, in a real browser: what arrives at least, the outcome, and the states without a quote. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findBarriers } from './accessibility.ts'
import { findChromium } from './chromium.ts'
import { type ConsoleScene, openConsole, takePictures } from './console-scene.ts'

const executable = findChromium()

describe.skipIf(executable === undefined)('the page Convert in Chromium', () => {
  let scene: ConsoleScene
  let page: Page
  beforeAll(async () => {
    scene = await openConsole()
    ;({ page } = scene)
  }, 180_000)
  afterAll(async () => {
    await scene?.close()
  })

  const picture = (name: string) => takePictures(page, `convert-${name}`)
  const press = () => page.getByRole('button', { name: /^Convert / })

  it('leads from Home to a quote that says what arrives at least', async () => {
    await page.goto('/')
    await page.getByRole('link', { name: 'Convert' }).click()
    await page.getByRole('heading', { name: 'Convert', exact: true }).waitFor()
    expect(await page.getByRole('button', { name: 'Convert', exact: true }).isDisabled()).toBe(true)
    await picture('empty')
    await page.getByLabel('You convert').fill('25')
    await page.getByText('At least', { exact: true }).waitFor()
    expect(await press().isEnabled()).toBe(true)
    await picture('quoted')
    for (const theme of ['light', 'dark'] as const) expect(await findBarriers(page, theme)).toEqual([])
  }, 120_000)

  it('says what is wrong with an amount, and that no quote came', async () => {
    await page.getByLabel('You convert').fill('1000000')
    await page.getByText(/^You have .* USDC\.$/).waitFor()
    expect(await page.getByRole('button', { name: 'Convert', exact: true }).isDisabled()).toBe(true)
    await picture('too-much')
    await page.route('**/api/swaps', (route) => route.abort())
    await page.getByLabel('You convert').fill('26')
    await page.getByText(/did not answer/).waitFor()
    await picture('failed')
    await page.unroute('**/api/swaps')
  }, 120_000)

  it('converts, turned around as well, and shows both sides in activity', async () => {
    await page.getByLabel('You convert').fill('25')
    await press().click()
    await page.getByRole('heading', { name: /^You got \d+\.\d+ EURC$/ }).waitFor()
    await picture('done')
    expect(await findBarriers(page, 'light')).toEqual([])
    await page.getByRole('button', { name: 'Convert again' }).click()
    await page.getByRole('button', { name: 'Turn around' }).click()
    await page.getByLabel('You convert').fill('10')
    await press().click()
    await page.getByRole('heading', { name: /^You got \d+\.\d+ USDC$/ }).waitFor()
    await page.getByRole('link', { name: 'See it in activity' }).click()
    await expect.poll(() => page.getByText('Conversion').count()).toBeGreaterThanOrEqual(4)
    await picture('activity')
    const { body } = await scene.owner.send('GET', '/api/swaps/orders')
    expect(body.orders).toMatchObject([
      { status: 'confirmed', sent: '10', sell: { token: 'EURC' } },
      { status: 'confirmed', sent: '25', sell: { token: 'USDC' } },
    ])
  }, 120_000)
})
