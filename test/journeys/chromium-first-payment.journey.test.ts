/** The owner's way from "New agent" to a first approved payment, in a real browser, with real programs as the agent. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { startBursar } from '../commands/bursar.ts'
import { keptAuthorization } from '../mcp/kept-authorization.ts'
import { stdioTransport } from '../mcp/scene.ts'
import { computeTotp } from '../people/identity/signed-in.ts'
import { findBarriers } from './accessibility.ts'
import {
  expectVisible,
  findChromium,
  giveSession,
  newVisit,
  openSuiteBrowser,
  type Visit,
} from './chromium.ts'
import { sharedGateway } from './gateway.ts'
import { enrollMfa, newGuest, newMailbox, type Person, signInByEmail } from './people.ts'

const executable = findChromium()
if (executable === undefined)
  process.stderr.write('No Chromium here: the first payment is not tested. Set CHROMIUM_BIN.\n')

const REDIRECT = 'http://127.0.0.1:39996/callback'
const payee = '0x71C7656EC7ab88b098defB751B7401B5f6d8976F'
/** Presses of buttons, links and boxes that an owner needs at most. */
const MAX_PRESSES = 10

const newAuthorization = (open: (url: URL) => Promise<void>) =>
  keptAuthorization({ name: 'Chat app', redirectUrl: REDIRECT }, open)

describe.skipIf(executable === undefined)('the way to a first approved payment', () => {
  const directory = mkdtempSync(join(tmpdir(), 'bursar-first-'))
  const origin = sharedGateway()
  const site = origin.replace('127.0.0.1', 'localhost')
  const browser = openSuiteBrowser()
  let visit: Visit
  let page: Page
  let presses = 0
  afterAll(() => rmSync(directory, { recursive: true, force: true }))
  beforeEach(async () => {
    visit = await newVisit(browser(), site)
    page = visit.page
    presses = 0
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: site })
  })
  afterEach(async () => {
    expect(visit.complaints).toEqual([])
    await page.context().close()
  })

  const comeAs = ({ token }: Person) => giveSession(page.context(), site, token)
  const owners = {
    'a guest': async () => {
      await comeAs(await newGuest(origin))
      return async () => undefined
    },
    'an owner with a second factor': async () => {
      const mailbox = newMailbox('first')
      const proven = await signInByEmail(origin, mailbox)
      expect((await proven.send('POST', '/sandbox/faucet', {})).status).toBe(200)
      const secret = await enrollMfa(proven)
      // Another session, which has not shown the factor yet.
      await comeAs(await signInByEmail(origin, mailbox))
      return async (asking: Page) => {
        await asking
          .getByLabel('Code from your authenticator app')
          .fill(computeTotp(secret, new Date(Date.now() + 30_000)))
        await press(asking.getByRole('button', { name: 'Confirm', exact: true }))
      }
    },
  } as const
  const press = async (target: Locator) => {
    presses += 1
    await target.click()
  }
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  const link = (name: string) => page.getByRole('link', { name, exact: true })
  const heading = (name: string) => page.getByRole('heading', { name })
  /** What the owner has copied. */
  const readClipboard = async () => z.string().parse(await page.evaluate('navigator.clipboard.readText()'))
  /** Goes from the console to the third step, with everything that is suggested. */
  const begin = async () => {
    await page.goto('/')
    await press(link('New agent').first())
    await press(button('Continue'))
    await page.getByText('Tried on your past').waitFor()
    await press(button('Continue'))
    await heading('How it connects').waitFor()
  }
  const pay = (client: Client) =>
    client.callTool({
      name: 'wallets_transfer',
      arguments: { destination: payee, amount: '3', idempotency_key: 'first' },
    })
  const parseAnswer = ({ content }: Record<string, unknown>) => {
    const [first] = z.array(z.looseObject({ text: z.string() })).parse(content)
    return z.looseObject({}).parse(JSON.parse(first?.text ?? '{}'))
  }
  /** Waits for the agent's request on the page where the agent was connected, and approves it. */
  const approve = async () => {
    await page.getByText(/^It asks for your yes: Send 3\.00 USDC to 0x71C7…976F$/).waitFor()
    await press(link('Review'))
    await heading('wants to send 3.00 USDC').waitFor({ state: 'attached' })
    await press(button('Approve'))
    await heading('Approved and completed').waitFor()
  }
  const done = () => link('Done').count()

  it.each([
    ['a guest', 8],
    ['an owner with a second factor', 9],
  ] as const)(
    'leads an app that takes a URL there, for %s in %i presses',
    async (owner, expected) => {
      const confirm = await owners[owner]()
      await begin()
      await press(page.getByRole('radio', { name: /An app that takes a URL/ }))
      await press(button('Copy the address'))
      const address = await readClipboard()
      expect(address).toBe(`${site}/mcp`)

      const opened: { back?: Promise<URL> } = {}
      const allow = async (url: URL) => {
        const other = await page.context().newPage()
        await other.route(`${REDIRECT}*`, (route) => route.fulfill({ body: 'You can close this page.' }))
        await other.goto(url.href)
        await other.getByText('Filled in with what you have just chosen for “My agent”').waitFor()
        const back = other.waitForRequest((request) => request.url().startsWith(REDIRECT))
        await press(other.getByRole('button', { name: 'Allow', exact: true }))
        await confirm(other)
        const returned = new URL((await back).url())
        await other.close()
        return returned
      }
      const authProvider = newAuthorization(async (url) => {
        opened.back = allow(url)
      })
      const first = new StreamableHTTPClientTransport(new URL(address), { authProvider })
      await expect(new Client({ name: 'app', version: '1' }).connect(first as never)).rejects.toThrow()
      await first.finishAuth((await opened.back)?.searchParams.get('code') ?? '')
      const client = new Client({ name: 'app', version: '1' })
      await client.connect(new StreamableHTTPClientTransport(new URL(address), { authProvider }) as never)

      // Connecting and listing tools is no call yet.
      expect((await client.listTools()).tools.map(({ name }) => name)).toContain('wallets_transfer')
      await page.getByText('Chat app is connected. Waiting for its first call.').waitFor()
      await expectVisible(link('Open the agent’s page'))
      expect(await done()).toBe(0)

      expect(parseAnswer(await pay(client))).toMatchObject({ code: 'approval_required' })
      await page.getByText('Chat app is connected. It has made its first call.').waitFor()
      expect(await done()).toBe(1)
      await approve()
      expect(parseAnswer(await pay(client))).toMatchObject({ status: 'confirmed', amount: '3' })
      await client.close()
      expect(presses).toBe(expected)
      expect(presses).toBeLessThanOrEqual(MAX_PRESSES)
    },
    90_000,
  )

  it.each([
    ['a guest', 9],
    ['an owner with a second factor', 10],
  ] as const)(
    'leads a program with a terminal there, for %s in %i presses',
    async (owner, expected) => {
      const confirm = await owners[owner]()
      await begin()
      await press(button('Own key'))
      await press(button('Copy the command'))
      const file = join(directory, `${expected}.json`)
      // As a shell takes it apart.
      const words = [...(await readClipboard()).matchAll(/'([^']*)'|\S+/g)].map(
        ([word, quoted]) => quoted ?? word,
      )
      const [npx, bursar, ...args] = words.map((word) => (word === 'agent.json' ? file : word))
      expect([npx, bursar]).toEqual(['npx', 'bursar'])
      const running = startBursar(args)
      await expect.poll(running.err, { timeout: 20_000 }).toMatch(/Waiting for the owner/)
      const [, url = ''] = /(http\S+\/agents\/connect\/\S+)/.exec(running.err()) ?? []
      const other = await page.context().newPage()
      await other.goto(url)
      await other.getByText('Filled in with what you have just chosen for “My agent”').waitFor()
      await press(other.getByLabel('my terminal shows this code'))
      await press(other.getByRole('button', { name: 'Approve', exact: true }))
      await confirm(other)
      expect((await running.ended).code).toBe(0)
      await other.close()
      await page.getByText('My agent is connected. Waiting for its first call.').waitFor()
      expect(await done()).toBe(0)

      const client = new Client({ name: 'program', version: '1' })
      await client.connect(stdioTransport(origin, file))
      expect(parseAnswer(await pay(client))).toMatchObject({ code: 'approval_required' })
      await page.getByText('My agent is connected. It has made its first call.').waitFor()
      await approve()
      expect(parseAnswer(await pay(client))).toMatchObject({ status: 'confirmed', amount: '3' })
      await client.close()
      expect(presses).toBe(expected)
      expect(presses).toBeLessThanOrEqual(MAX_PRESSES)
    },
    90_000,
  )

  it('shows where to paste the address on screens of 375 and 1280 pixels, without a serious barrier', async () => {
    await comeAs(await newGuest(origin))
    for (const width of [375, 1280])
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
        await page.setViewportSize({ width, height: 900 })
        await begin()
        await page.getByRole('radio', { name: /An app that takes a URL/ }).click()
        await expectVisible(page.getByRole('img', { name: `Code to scan: ${site}/mcp` }))
        await expectVisible(
          page.getByRole('img', { name: /The settings of Claude.*“Remote MCP server URL”/ }),
        )
        await expectVisible(page.getByRole('img', { name: /The settings of ChatGPT.*“MCP Server URL”/ }))
        await expectVisible(page.getByText('This gateway is at an address of this computer.'))
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
        const found = await findBarriers(page, colorScheme)
        expect([width, colorScheme, found]).toEqual([width, colorScheme, []])
      }
  }, 120_000)
})
