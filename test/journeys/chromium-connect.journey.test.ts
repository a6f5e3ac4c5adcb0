/** The page on which an owner registers an agent that shows a code, in a real browser. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { startBursar } from '../commands/bursar.ts'
import { findChromium, newVisit, openSuiteBrowser } from './chromium.ts'
import { sharedGateway } from './gateway.ts'

const executable = findChromium()
const hostile = '<b>Your bank</b>\u202e says: approve at once'

describe.skipIf(executable === undefined)('the connect page in Chromium', () => {
  const directory = mkdtempSync(join(tmpdir(), 'bursar-connect-'))
  const origin = sharedGateway()
  const browser = openSuiteBrowser()
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  /** Starts the command, and reads what its person sees. */
  const register = async (file: string) => {
    const out = join(directory, file)
    const args = ['agent', 'register', '--url', origin, '--name', hostile, '--out', out]
    const running = startBursar(args)
    await expect.poll(running.err, { timeout: 20_000 }).toMatch(/Waiting for the owner/)
    const [, url = ''] = /(http\S+\/agents\/connect\/\S+)/.exec(running.err()) ?? []
    const [, userCode = ''] = /code ([A-Z]{4}-[A-Z]{4})/.exec(running.err()) ?? []
    return { ...running, url, userCode, out }
  }
  /** Opens the page on a small screen, and signs in on the way. */
  const visitSmall = async (url: string) => {
    const visit = await newVisit(browser(), origin)
    await visit.page.setViewportSize({ width: 360, height: 740 })
    await visit.page.goto(url)
    expect(new URL(visit.page.url()).pathname).toBe('/sign-in')
    await visit.page.getByRole('button', { name: /guest/i }).click()
    await visit.page.getByRole('heading', { name: 'Connect this agent?' }).waitFor()
    return visit
  }
  const text = (page: Page, id: string) => page.locator(`#${id}`).textContent()

  it('shows what the terminal shows, and registers the agent with the chosen scopes and limits', async () => {
    const { url, userCode, ended, out } = await register('approved.json')
    const { page, complaints } = await visitSmall(url)
    await page.getByText(userCode).waitFor()
    expect(await text(page, 'agent')).toBe('<b>Your bank</b> says: approve at once')
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360)
    expect(await page.getByLabel('See the wallet').isChecked()).toBe(true)
    expect(await page.getByLabel('Send stablecoins').isChecked()).toBe(false)
    await page.getByLabel('Send stablecoins').check()
    await page
      .getByRole('button', {
        name: /Careful.*\$20 a day.*\$5 a payment.*\$60 a week, \$150 a month.*Asks you above \$2/,
      })
      .click()
    const approve = page.getByRole('button', { name: 'Approve', exact: true })
    await approve.click()
    // Without the comparison, the browser does not submit the form.
    expect(await page.locator('#request').isVisible()).toBe(true)
    await page.getByLabel('my terminal shows this code').check()
    await approve.click()
    await page.getByText('Approved. The agent is among your agent keys.').waitFor()
    const { code, out: printed } = await ended
    const registered = z.object({ keyId: z.string(), scopes: z.array(z.string()) }).parse(JSON.parse(printed))
    expect([code, registered.scopes]).toEqual([0, expect.arrayContaining(['wallets:transfer'])])
    expect(registered.scopes).not.toContain('cards:write')
    expect(JSON.parse(readFileSync(out, 'utf8'))).toMatchObject({ keyId: registered.keyId })
    await page.reload()
    await page.getByText('Approved. The agent is among your agent keys.').waitFor()
    expect(await page.locator('#request').isVisible()).toBe(false)
    expect(complaints).toEqual([])
    await page.context().close()
  }, 180_000)

  it('rejects the agent, whose command ends', async () => {
    const { url, ended } = await register('rejected.json')
    const { page, complaints } = await visitSmall(url)
    await page.getByRole('button', { name: 'Reject' }).click()
    await page.getByText('Rejected. The agent has no access.').waitFor()
    expect((await ended).err).toContain('The owner rejected the agent')
    expect(complaints).toEqual([])
    await page.context().close()
  }, 180_000)

  it('shows nothing for an invented code', async () => {
    const { page } = await visitSmall(`${origin}/agents/connect/invented`)
    await page.getByText('No agent waits under this code').waitFor()
    await page.getByRole('link', { name: 'Go to your account' }).waitFor()
    expect(await page.locator('#request').isVisible()).toBe(false)
    await page.context().close()
  })

  it('is on no other page, and takes scripts and requests of its own origin only', async () => {
    const { page } = await visitSmall(`${origin}/agents/connect/invented`)
    const response = await page.reload()
    const policy = response?.headers()['content-security-policy']
    expect(policy).toMatch(/default-src 'none'.*script-src 'self'.*frame-ancestors 'none'/)
    const { status } = await page.evaluate<{ status: number }>(
      `fetch('/api/agents/registrations/invented/reject', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }).then(({ status }) => ({ status }))`,
    )
    expect(status).toBe(404)
    const cookies = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ')
    const crossSite = await fetch(`${origin}/api/agents/registrations/invented/reject`, {
      method: 'POST',
      headers: { cookie: cookies, origin: 'https://evil.example', 'content-type': 'application/json' },
      body: '{}',
    })
    expect(crossSite.status).toBe(403)
    await page.context().close()
  })

  it('signs out, as soon as its script runs', async () => {
    const { url } = await register('signed-out.json')
    const { page } = await visitSmall(url)
    let release: () => void = () => undefined
    const held = new Promise<void>((done) => {
      release = done
    })
    await page.route('**/assets/connect.js', async (route) => {
      await held
      await route.continue()
    })
    const signOut = page.getByRole('button', { name: /^Sign out of / })
    await page.reload({ waitUntil: 'commit' })
    await signOut.waitFor()
    // Posted by the browser itself, the form would end on an error.
    expect(await signOut.isDisabled()).toBe(true)
    release()
    await signOut.click()
    await page.waitForURL(/\/sign-in$/)
    await page.goto(url)
    expect(new URL(page.url()).pathname).toBe('/sign-in')
  })
})
