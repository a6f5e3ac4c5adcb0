/** A real Chromium with a virtual authenticator, if the machine has one. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, type CDPSession, chromium, type Page } from 'playwright-core'

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

/** Starts Chromium without its sandbox: containers often run as root, where Chromium has none. */
export function openBrowser(executablePath: string): Promise<Browser> {
  return chromium.launch({ executablePath, headless: true, args: ['--no-sandbox'] })
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

/** Waits for the console of a person who has just signed in. The rail is hidden on small screens. */
export async function waitForConsole(page: Page, name = ''): Promise<void> {
  await page.locator('.rail .who', { hasText: name }).waitFor({ state: 'attached' })
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
