/** Cards for one purchase in the console: open ones beside the others, ended ones folded, each with the task it was for. */
import { mkdirSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { findBarriers } from './accessibility.ts'
import { findChromium, giveSession, newVisit, openSuiteBrowser } from './chromium.ts'
import { sharedGateway } from './gateway.ts'
import { newGuest, requestJson } from './people.ts'

const executable = findChromium()
const SCREENSHOTS = '.build/screenshots'
const looks = [
  { name: 'light-1280', width: 1280, colorScheme: 'light' },
  { name: 'dark-375', width: 375, colorScheme: 'dark' },
] as const

describe.skipIf(executable === undefined)('cards for one purchase in the console', () => {
  const origin = sharedGateway()
  const site = origin.replace('127.0.0.1', 'localhost')
  const browser = openSuiteBrowser()
  beforeAll(() => void mkdirSync(SCREENSHOTS, { recursive: true }))

  it('shows what each may take, where, for which task, and ends it', async () => {
    const owner = await newGuest(origin)
    const { body: key } = await owner.send('POST', '/api/developer/keys', {
      name: 'Shopper',
      scopes: ['cards:pay', 'cards:read'],
      policy: { perTransaction: { max: '50' }, dailyBudget: { max: '200' }, categories: { allow: ['card'] } },
    })
    const issue = async (task: string, singleUse: object) => {
      const headers = { authorization: `Bearer ${String(key.key)}`, 'bursar-task': task }
      const { status, body } = await requestJson(origin, 'POST', '/api/cards', {
        headers,
        body: { singleUse },
      })
      expect([status, body]).toEqual([200, expect.anything()])
      return String(body.id)
    }
    const used = await issue('report-17', { amount: '12.50', merchant: { name: 'Example Books' } })
    const bought = { cardId: used, amount: '12.50', merchant: 'Example Books' }
    expect(await owner.send('POST', '/sandbox/authorizations', bought)).toMatchObject({
      body: { result: 'APPROVED', cleared: true },
    })
    const open = await issue('report-18', { amount: '30', merchant: { mcc: '5942', country: 'US' } })

    const visit = await newVisit(browser(), site)
    const { page } = visit
    await giveSession(page.context(), site, owner.token)
    await page.goto(`/cards/${open}`)
    await page.getByText('For one purchase', { exact: true }).waitFor()
    for (const words of ['$30.00', 'Books, in US', 'Shopper', 'report-18'])
      await page.locator('dl.facts').getByText(words, { exact: true }).first().waitFor()
    await page.getByText('1 ended card for one purchase').click()
    await page.getByRole('link', { name: /Example Books.*\$12\.50.*Used/ }).waitFor()
    for (const { name, width, colorScheme } of looks) {
      await page.setViewportSize({ width, height: width === 375 ? 844 : 960 })
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      expect(await page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth')).toBe(false)
      expect(await findBarriers(page, colorScheme)).toEqual([])
      await page.screenshot({ path: `${SCREENSHOTS}/cards-for-one-${name}.png`, fullPage: true })
    }
    await page.getByRole('button', { name: /^Cancel card/ }).click()
    await page.getByRole('button', { name: 'Cancel it for good' }).click()
    await page.getByText('2 ended cards for one purchase').waitFor()
    const { body: wallet } = await owner.send('GET', '/api/cards')
    expect(wallet.cards).toEqual(
      expect.arrayContaining([expect.objectContaining({ id: open, status: 'canceled' })]),
    )
    expect(visit.complaints).toEqual([])
    await page.context().close()
  }, 180_000)
})
