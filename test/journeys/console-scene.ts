/** The console of a new guest in a page of its own, and pictures of it. */
import { mkdirSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { giveSession, newVisit, openBrowser } from './chromium.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person } from './people.ts'

export interface ConsoleScene {
  readonly gateway: Gateway
  readonly owner: Person
  readonly page: Page
  close(): Promise<void>
}

/** Starts a gateway on a simulated chain, and opens the console of a guest. @param settings more environment variables */
export async function openConsole(settings: Readonly<Record<string, string>> = {}): Promise<ConsoleScene> {
  const gateway = await startGateway({ CHAIN: 'simulated', RATE_MUTATIONS: '10000/60', ...settings })
  const browser = await openBrowser()
  const owner = await newGuest(gateway.origin)
  const site = gateway.origin.replace('127.0.0.1', 'localhost')
  const { page } = await newVisit(browser, site)
  await giveSession(page.context(), site, owner.token)
  return {
    gateway,
    owner,
    page,
    async close() {
      await browser.close()
      await gateway.stop()
    },
  }
}

/** Folder for pictures of pages; absent: none are taken. */
const shots = process.env.SHOTS

/** Takes pictures of a page at both widths and in both themes. */
export async function takePictures(page: Page, name: string): Promise<void> {
  if (shots === undefined) return
  mkdirSync(shots, { recursive: true })
  for (const [width, height] of [
    [1280, 900],
    [390, 844],
  ] as const)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.setViewportSize({ width, height })
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.waitForTimeout(400)
      await page.screenshot({ path: `${shots}/${name}-${width}-${colorScheme}.png`, fullPage: true })
    }
  await page.setViewportSize({ width: 1280, height: 900 })
  await page.emulateMedia({ colorScheme: 'light' })
}
