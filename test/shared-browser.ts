/** Global setup: one Chromium for all files, where the machine has one. Each visit has cookies and storage of its own. */
import { chromium } from 'playwright-core'
import type { TestProject } from 'vitest/node'
import { findChromium } from './journeys/chromium.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the browser listens; empty without one. */
    readonly browser: string
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const executablePath = findChromium()
  if (executablePath === undefined) {
    project.provide('browser', '')
    return async () => {}
  }
  // Without its sandbox: containers often run as root, where Chromium has none.
  const server = await chromium.launchServer({ executablePath, headless: true, args: ['--no-sandbox'] })
  project.provide('browser', server.wsEndpoint())
  return () => server.close()
}
