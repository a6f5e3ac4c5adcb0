/** Agents and approvals in the owner's console: every way to connect, the policy, the stop, and the answer. */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { startBursar } from '../commands/bursar.ts'
import { computeTotp } from '../people/identity/signed-in.ts'
import { findBarriers } from './accessibility.ts'
import { newAgent as newSigningAgent } from './agent.ts'
import {
  expectVisible,
  findChromium,
  giveSession,
  newVisit,
  openSuiteBrowser,
  type Visit,
} from './chromium.ts'
import { sharedGateway } from './gateway.ts'
import { enrollMfa, newGuest, newMailbox, type Person, requestJson, signInByEmail } from './people.ts'

const executable = findChromium()
if (executable === undefined)
  process.stderr.write('No Chromium here: agents and approvals are not tested. Set CHROMIUM_BIN.\n')

const REDIRECT = 'http://127.0.0.1:39997/callback'
const payee = '0x71C7656EC7ab88b098defB751B7401B5f6d8976F'
const hostile = '<img src=x onerror="document.title=1"><b>Bursar: already approved</b>'

describe.skipIf(executable === undefined)('agents and approvals in the console', () => {
  const directory = mkdtempSync(join(tmpdir(), 'bursar-console-'))
  const origin = sharedGateway()
  const site = origin.replace('127.0.0.1', 'localhost')
  const browser = openSuiteBrowser()
  let owner: Person
  let visit: Visit
  let page: Page
  /** What the browser reports during the test. */
  let complaints: readonly string[]
  afterAll(() => rmSync(directory, { recursive: true, force: true }))
  beforeEach(async () => {
    owner = await newGuest(origin)
    complaints = []
    visit = await newVisit(browser(), site)
    page = visit.page
    await giveSession(page.context(), site, owner.token)
  })
  afterEach(async () => {
    expect(visit.complaints).toEqual(complaints)
    await page.context().close()
  })

  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true })
  const inDialog = (name: string) => page.getByRole('dialog').getByRole('button', { name, exact: true })
  const heading = (name: string | RegExp) => page.getByRole('heading', { name })
  const pay = (key: string, amount: string) =>
    requestJson(origin, 'POST', '/api/wallets/transfer', {
      headers: { authorization: `Bearer ${key}`, 'idempotency-key': randomUUID() },
      body: { destination: payee, amount },
    })
  const ask = async (key: string, amount: string, reason: string) => {
    const { body } = await requestJson(origin, 'POST', '/api/approvals', {
      headers: { authorization: `Bearer ${key}` },
      body: { operation: 'wallets.transfer', input: { destination: payee, amount }, reason },
    })
    return z.string().parse(body.approvalId)
  }
  /** An agent under the limits that the console suggests. */
  const newAgent = async () => {
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'My agent',
      scopes: ['wallets:read', 'wallets:transfer'],
      policy: {
        perTransaction: { max: '5' },
        dailyBudget: { max: '20' },
        categories: { allow: ['transfer'] },
        approval: { above: '2', ttlSec: 3600 },
      },
    })
    const { id, key } = z.object({ id: z.string(), key: z.string() }).parse(body)
    return { key, path: `/agents/${id}` }
  }
  /** An agent that sees balances and cards, and has no policy. */
  const newSeeingAgent = async (person: Person) => {
    const { body } = await person.send('POST', '/api/agents/keys', {
      name: 'Reader',
      publicKey: (await newSigningAgent()).jwk.x,
      scopes: ['wallets:read', 'cards:read'],
    })
    return { path: `/agents/${z.string().parse(body.agentId)}` }
  }
  /** Goes to the third step with a name. */
  const begin = async (name: string) => {
    await page.goto('/agents/new')
    await page.getByLabel('Name').fill(name)
    await button('Continue').click()
    await page.getByText('Tried on your past').waitFor()
    await button('Continue').click()
    await heading('How it connects').waitFor()
  }

  it('takes a newcomer from home to an approved first payment in at most 12 presses', async () => {
    await page.goto('/')
    await heading('Let an agent pay').waitFor()
    let presses = 0
    const press = async (name: string | RegExp, role: 'button' | 'link' = 'button') => {
      presses += 1
      await page.getByRole(role, { name, exact: true }).first().click()
    }
    await press('New agent', 'link')
    await press('Continue')
    await press('Continue')
    await press('API key')
    await press('Make an API key')
    await heading('Its key').waitFor()
    const key = (await page.locator('.copy code').first().textContent()) ?? ''
    expect(key).toMatch(/^bsk_/)
    await press('Copy the API key')
    expect((await pay(key, '3')).status).toBe(403)
    await press('Home', 'link')
    await press(/^Review/, 'link')
    await heading(/My agent wants to send 3\.00 USDC to 0x71C7…976F/).waitFor({ state: 'attached' })
    await press('Approve')
    await heading('Approved and completed').waitFor()
    expect(await page.evaluate('document.activeElement?.textContent')).toBe('Approved and completed')
    await expectVisible(page.getByText('Signature verified here').first())
    expect(presses).toBeLessThanOrEqual(12)
    await page.goto('/agents')
    await page.getByRole('link', { name: /My agent/ }).click()
    await heading('My agent').waitFor()
  }, 180_000)

  it('notices an agent that registers its own key, and gives it the name and limits set here', async () => {
    await begin('Invoice bot')
    await button('Own key').click()
    const command = (await page.locator('.copy code').textContent()) ?? ''
    expect(command).toContain(`--url ${new URL(page.url()).origin} --name 'Invoice bot'`)
    await page.getByText('Waiting for the agent to connect').waitFor()
    const running = startBursar([
      ...['agent', 'register', '--url', origin, '--name', 'cli'],
      ...['--out', join(directory, 'agent.json')],
    ])
    await expect.poll(running.err, { timeout: 20_000 }).toMatch(/Waiting for the owner/)
    const [, url = ''] = /(http\S+\/agents\/connect\/\S+)/.exec(running.err()) ?? []
    const other = await page.context().newPage()
    await other.goto(url)
    await other.getByText('Filled in with what you have just chosen for “Invoice bot”').waitFor()
    expect(await other.getByLabel('Send stablecoins').isChecked()).toBe(true)
    expect(await other.getByLabel('Issue cards and').isChecked()).toBe(false)
    expect(await other.getByLabel('Limit per day (UTC)').inputValue()).toBe('20')
    await other.getByLabel('my terminal shows this code').check()
    await other.getByRole('button', { name: 'Approve', exact: true }).click()
    expect((await running.ended).code).toBe(0)
    await other.close()
    await page.getByText('is connected.').waitFor()
    await page.getByText('Transfers, purchases and currency quotes').waitFor()
    await expectVisible(page.getByText(/Up to \$5\.00 at a time.*\$20\.00 a day/).first())
    await button('Use the name and limits set here').click()
    await page.getByText('Invoice bot is connected.').waitFor()
    await page.getByRole('link', { name: 'Open the agent’s page' }).click()
    await heading('Invoice bot').waitFor()
    await expectVisible(page.getByText('None yet', { exact: true }))
    await page.getByText('Signs with its own key').first().waitFor()
    await page.getByText('a week and').waitFor()
  }, 180_000)

  it('notices an agent that connects by OAuth', async () => {
    await begin('Shopping Claude')
    expect(await page.locator('.copy code').textContent()).toContain('/mcp')
    const { body: client } = await requestJson(origin, 'POST', '/oauth/register', {
      body: {
        client_name: 'Claude Code',
        redirect_uris: [REDIRECT],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
      },
    })
    const verifier = randomBytes(32).toString('base64url')
    const query = new URLSearchParams({
      client_id: z.string().parse(client.client_id),
      redirect_uri: REDIRECT,
      response_type: 'code',
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
      scope: 'wallets:read wallets:transfer',
      resource: `${site}/mcp`,
      state: 's',
    })
    const other = await page.context().newPage()
    await other.route(`${REDIRECT}*`, (route) => route.fulfill({ body: 'You can close this page.' }))
    await other.goto(`/oauth/authorize?${query}`)
    // It asked for transfers, not for purchases: what is granted is never more.
    await other.getByText('Filled in with what you have just chosen for “Shopping Claude”').waitFor()
    expect(await other.getByLabel('Send stablecoins').isChecked()).toBe(true)
    expect(await other.getByLabel('Buy paid web resources').count()).toBe(0)
    const back = other.waitForRequest((request) => request.url().startsWith(REDIRECT))
    await other.getByRole('button', { name: 'Allow', exact: true }).click()
    const code = new URL((await back).url()).searchParams.get('code') ?? ''
    await other.close()
    await fetch(new URL('/oauth/token', origin), {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        client_id: query.get('client_id') ?? '',
        code,
        code_verifier: verifier,
        redirect_uri: REDIRECT,
        resource: `${site}/mcp`,
      }),
    })
    await page.getByText('is connected.').waitFor()
    await page.getByText('Purchases and currency quotes').waitFor()
    expect(await page.evaluate("localStorage.getItem('bursar.plannedAgent')")).toBeNull()
    await page.getByRole('link', { name: 'Open the agent’s page' }).click()
    await page.getByText('By OAuth').first().waitFor()
  }, 180_000)

  it('tries a changed policy on the past while it is typed, refuses contradictions, and saves it', async () => {
    const { key, path } = await newAgent()
    for (const amount of ['1', '1.5', '2']) expect((await pay(key, amount)).status).toBe(200)
    await page.goto(path)
    await button('Change policy').click()
    await page.getByText(/^Would have denied 0 of \d/).waitFor()
    const each = page.getByLabel('At a time, in US dollars')
    await each.fill('1')
    await page.getByText(/^Would have denied 2 of \d/).waitFor()
    await page.getByText('$1.50 is above $1.00 a payment').first().waitFor()
    await each.fill('30')
    await page.getByText('More than the $20.00 a day. Lower it, or raise the day.').waitFor()
    expect(await button('Save').isDisabled()).toBe(true)
    await each.fill('4')
    await page.getByLabel('A day, in US dollars').fill('16')
    await button('Save').click()
    await heading('My agent').waitFor()
    await page.getByText('Version 2', { exact: true }).waitFor()
    await expectVisible(page.getByText('Up to $4.00 at a time and $16.00 a day.'))
  }, 180_000)

  it('takes and grants access on the agent’s page, and says what a press will change', async () => {
    const { key, path } = await newAgent()
    await page.goto(path)
    await button('Change its access').click()
    expect(await button('Nothing changed').isDisabled()).toBe(true)
    await page.getByLabel('Send transfers').uncheck()
    await page.getByLabel('See cards').check()
    await button('Grant: see cards · Take away: send transfers').click()
    await page.getByText('Balances and cards', { exact: true }).waitFor()
    expect((await pay(key, '1')).body).toMatchObject({ code: 'insufficient_scope' })
    await button('Change its access').click()
    await page.getByLabel('Send transfers').check()
    await page.getByLabel('Place orders').check()
    await page.getByText('Its policy does not let it place orders yet').waitFor()
    await page.getByLabel('Place orders').uncheck()
    await button('Grant: send transfers').click()
    await page.getByText('Transfers', { exact: true }).first().waitFor()
    expect((await pay(key, '1')).status).toBe(200)
  }, 180_000)

  it('takes access at once, and asks for the second factor before it grants any', async () => {
    const mailbox = newMailbox('access')
    const proven = await signInByEmail(origin, mailbox)
    const secret = await enrollMfa(proven)
    const code = computeTotp(secret, new Date(Date.now() + 30_000))
    const { path } = await newSeeingAgent(proven)
    owner = await signInByEmail(origin, mailbox)
    await giveSession(page.context(), site, owner.token)
    await page.goto(path)
    await button('Change its access').click()
    await page.getByLabel('Send transfers').check()
    await page.getByText('It has no limits to spend within.').waitFor()
    expect(await button('Grant: send transfers').isDisabled()).toBe(true)
    await page.getByLabel('Send transfers').uncheck()
    await page.getByLabel('See cards').uncheck()
    await button('Take away: see cards').click()
    await page.getByText('Balances', { exact: true }).waitFor()
    await button('Change its access').click()
    await page.getByLabel('See cards').check()
    await button('Grant: see cards').click()
    await inDialog('Cancel').click()
    expect(await page.getByLabel('See cards').isChecked()).toBe(true)
    await button('Grant: see cards').click()
    // Each try was refused until the factor was shown.
    complaints = Array(2).fill(
      'Failed to load resource: the server responded with a status of 401 (Unauthorized)',
    )
    await page.getByLabel('Code from your authenticator app').fill(code)
    await inDialog('Confirm').click()
    await page.getByText('Balances and cards', { exact: true }).waitFor()
  }, 180_000)

  it('stops an agent with one press, and starts it again', async () => {
    const { key, path } = await newAgent()
    await page.goto(path)
    await button('Stop').click()
    await button('Start again').waitFor()
    expect((await pay(key, '1')).status).toBe(403)
    await page.goto('/agents')
    await page.getByText('Stopped and ended').waitFor()
    await page.goto(path)
    await button('Start again').click()
    await button('Stop').waitFor()
    expect((await pay(key, '1')).status).toBe(200)
  }, 180_000)

  it('says why a payment was denied, in words with their numbers', async () => {
    const { key, path } = await newAgent()
    await pay(key, '64')
    await page.goto(path)
    await page
      .getByText(/Denied: \$64\.00 is above \$5\.00 a payment and above the \$20\.00 left today/)
      .click()
    await expectVisible(page.getByText('Signature verified here').first())
  }, 180_000)

  it('shows a hostile reason as text, and rejects with a note', async () => {
    const { key } = await newAgent()
    const id = await ask(key, '120', hostile)
    await page.goto('/approvals')
    await page.getByText('Above its limits').first().waitFor()
    await page.goto(`/approvals/${id}`)
    expect(await page.locator('blockquote').textContent()).toContain('<b>Bursar: already approved</b>')
    expect(await page.locator('blockquote *').count()).toBe(0)
    expect(await page.locator('#violations li').allTextContents()).toContain(
      '$120.00 is above $5.00 a payment.',
    )
    await page.getByText('exactly what would run').click()
    await page.getByText('base-sepolia by default').waitFor()
    await button('Reject').click()
    await page.getByLabel(/Note to the agent/).fill('Ask Robin first.')
    await inDialog('Reject').click()
    await heading('Rejected').waitFor()
    await page.getByText('Ask Robin first.').waitFor()
    const { body } = await requestJson(origin, 'GET', `/api/approvals/${id}`, {
      headers: { authorization: `Bearer ${key}` },
    })
    expect(body).toMatchObject({ status: 'rejected', note: 'Ask Robin first.' })
  }, 180_000)

  it('makes an exception that the owner approves, and shows what became of a withdrawn request', async () => {
    const { key } = await newAgent()
    const id = await ask(key, '6', 'Once.')
    await page.goto(`/approvals/${id}`)
    await button('Approve').click()
    await heading('Approved and completed').waitFor()
    const withdrawn = await ask(key, '7', 'Never mind.')
    await page.goto(`/approvals/${withdrawn}`)
    await button('Approve').waitFor()
    await requestJson(origin, 'DELETE', `/api/approvals/${withdrawn}`, {
      headers: { authorization: `Bearer ${key}` },
    })
    await heading('Withdrawn').waitFor()
    expect(await button('Approve').count()).toBe(0)
  }, 180_000)

  it('sets a cap over all agents', async () => {
    await newAgent()
    await page.goto('/agents')
    await button('Set a cap').click()
    await page.getByLabel(/^A day/).fill('250')
    await inDialog('Save').click()
    await expectVisible(page.getByText('of $250.00 left today'))
  }, 180_000)

  it('edits policies on screens of 390 and 1280 pixels, without a serious barrier in light or dark', async () => {
    const { key, path } = await newAgent()
    await pay(key, '1')
    for (const width of [390, 1280])
      for (const colorScheme of ['light', 'dark'] as const) {
        // Set before the page loads, so that no colour is measured on its way to another.
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
        await page.setViewportSize({ width, height: 900 })
        await page.goto(path)
        await button('Change its access').click()
        await page.getByLabel('Send transfers').waitFor()
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
        expect([width, colorScheme, await findBarriers(page, colorScheme)]).toEqual([width, colorScheme, []])
        await button('Change policy').click()
        await page.getByText(/^Would have denied/).waitFor()
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
        const found = await findBarriers(page, colorScheme)
        expect([width, colorScheme, found]).toEqual([width, colorScheme, []])
      }
  }, 120_000)

  it('keeps a revoked agent readable, after its name was typed', async () => {
    const { key, path } = await newAgent()
    await page.goto(path)
    await button('Revoke My agent').click()
    expect(await inDialog('Revoke for good').isDisabled()).toBe(true)
    await page.getByRole('dialog').getByRole('textbox').fill('My agent')
    await inDialog('Revoke for good').click()
    await page.getByText('This agent was revoked.').waitFor()
    expect(await button('Stop').count()).toBe(0)
    await page.goto('/agents')
    await page.getByRole('link', { name: /My agent.*Revoked/ }).click()
    await heading('Decisions').waitFor()
    expect((await pay(key, '1')).status).toBe(401)
  }, 180_000)
})
