/** The page on which a person signs in a program that shows a code, in a real browser. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { startBursar } from '../commands/bursar.ts'
import { findChromium, newVisit, openSuiteBrowser } from './chromium.ts'
import { sharedGateway } from './gateway.ts'

const executable = findChromium()

describe.skipIf(executable === undefined)('the device page in Chromium', () => {
  const directory = mkdtempSync(join(tmpdir(), 'bursar-device-'))
  const origin = sharedGateway()
  const browser = openSuiteBrowser()
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  /** Starts the command, and opens its page on a small screen, signing in on the way. */
  const visit = async (config: string) => {
    const running = startBursar(['login', '--url', origin], {
      XDG_CONFIG_HOME: join(directory, config),
    })
    await expect.poll(running.err, { timeout: 20_000 }).toMatch(/Waiting/)
    const [, url = ''] = /(http\S+\/devices\/\S+)/.exec(running.err()) ?? []
    const [, userCode = ''] = /code ([A-Z]{4}-[A-Z]{4})/.exec(running.err()) ?? []
    const opened = await newVisit(browser(), origin)
    await opened.page.setViewportSize({ width: 360, height: 740 })
    await opened.page.goto(url)
    expect(new URL(opened.page.url()).pathname).toBe('/sign-in')
    await opened.page.getByRole('button', { name: /guest/i }).click()
    await opened.page.getByRole('heading', { name: 'Sign in another device?' }).waitFor()
    await opened.page.getByText(userCode).waitFor()
    return { ...running, ...opened }
  }

  it('signs the program in once its person has compared the code', async () => {
    const { page, complaints, ended } = await visit('allowed')
    expect(await page.locator('#program').textContent()).toBe('Command line')
    expect(await page.locator('#address').textContent()).toMatch(/^127\.0\.0\.1$|^::1$/)
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360)
    const allow = page.getByRole('button', { name: 'Allow', exact: true })
    await allow.click()
    // Without the comparison, the browser does not submit the form.
    expect(await page.locator('#request').isVisible()).toBe(true)
    await page.getByLabel('my terminal shows this code').check()
    await allow.click()
    await page.getByText('Allowed. The program is signed in').waitFor()
    expect((await ended).code).toBe(0)
    expect(readFileSync(join(directory, 'allowed', 'bursar', 'sessions.json'), 'utf8')).toContain(origin)
    expect(complaints).toEqual([])
    await page.context().close()
  }, 180_000)

  it('rejects the program, whose command ends', async () => {
    const { page, complaints, ended } = await visit('rejected')
    await page.getByRole('button', { name: 'Reject' }).click()
    await page.getByText('Rejected. The program is not signed in.').waitFor()
    expect((await ended).err).toContain('The sign-in was rejected')
    expect(complaints).toEqual([])
    await page.context().close()
  }, 180_000)
})
