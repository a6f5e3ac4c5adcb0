/** A real Chromium with a virtual authenticator, if the machine has one. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import {
  type Browser,
  type BrowserContext,
  type CDPSession,
  chromium,
  type Locator,
  type Page,
} from 'playwright-core'
import { afterAll, beforeAll, expect, inject } from 'vitest'
import { lastCodeTo } from './people.ts'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome']

/** Finds the browser of this machine: CHROMIUM_BIN, or one on the PATH. */
export function findChromium(): string | undefined {
  const given = process.env.CHROMIUM_BIN
  const found = (process.env.PATH ?? '')
    .split(delimiter)
    .flatMap((folder) => NAMES.map((name) => join(folder, name)))
  return [...(given === undefined ? [] : [given]), ...found].find(isExecutable)
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Connects to the browser of this run. Closing the connection closes its pages, and leaves the browser running. */
export function openBrowser(): Promise<Browser> {
  const endpoint = inject('browser')
  if (endpoint === '') throw new Error('This suite has no browser.')
  return chromium.connect(endpoint)
}

/** Connects to the browser for a suite, and closes the connection after it. @returns the browser, within tests and hooks. */
export function openSuiteBrowser(): () => Browser {
  let browser: Browser | undefined
  beforeAll(async () => {
    browser = await openBrowser()
  }, 60_000)
  afterAll(() => browser?.close())
  return () => {
    if (browser === undefined) throw new Error('The browser opens before the tests.')
    return browser
  }
}

/** Page with its own cookies. @property complaints errors in the browser's console. */
export interface Visit {
  readonly page: Page
  readonly complaints: readonly string[]
  /** Plugs in an authenticator that verifies its user by itself. @returns a function that unplugs it. */
  addAuthenticator(): Promise<() => Promise<void>>
}

export async function newVisit(browser: Browser, origin: string): Promise<Visit> {
  const context = await browser.newContext({ baseURL: origin })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  const devtools = await context.newCDPSession(page)
  await devtools.send('WebAuthn.enable')
  return { page, complaints, addAuthenticator: () => addAuthenticator(devtools) }
}

/** Gives a browser a session, under both names of its cookie. */
export async function giveSession(context: BrowserContext, origin: string, token: string): Promise<void> {
  const names = ['bursar_session', `bursar_session_${new URL(origin).port}`]
  await context.addCookies(names.map((name) => ({ name, value: token, url: origin })))
}

/** Waits for the console of a person who has just signed in. The rail is hidden on small screens. */
export async function waitForConsole(page: Page, name = ''): Promise<void> {
  await page.locator('.rail .who', { hasText: name }).waitFor({ state: 'attached' })
}

/** Opens an account by a new passkey, from the sign-in page. */
export async function createAccount(page: Page, name: string): Promise<void> {
  await page.goto('/sign-in')
  await page.getByText('Create an account').click()
  await page.getByLabel('Your name').fill(name)
  await page.getByRole('button', { name: 'Create account with a passkey' }).click()
  await waitForConsole(page, name)
}

/** Waits until it is shown, and asserts that. */
export async function expectVisible(locator: Locator): Promise<void> {
  await locator.waitFor()
  expect(await locator.isVisible()).toBe(true)
}

/** Signs in on the sign-in page by a code that the sandbox sends to an e-mail address. */
export async function signInWithCode(page: Page, origin: string, mailbox: string): Promise<void> {
  await page.getByText('Use a one-time code').click()
  await page.getByLabel('E-mail address or phone number', { exact: true }).fill(mailbox)
  await page.getByRole('button', { name: 'Send a code' }).click()
  await page.getByText('A code is on its way.').waitFor()
  await page.getByLabel('Six-digit code').fill(await lastCodeTo(origin, mailbox))
  await page.getByRole('button', { name: 'Sign in with the code' }).click()
  await waitForConsole(page)
}

async function addAuthenticator(devtools: CDPSession): Promise<() => Promise<void>> {
  const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  return async () => {
    await devtools.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId })
  }
}
