/** The published client in a real browser: it signs in by the session cookie, pages, is refused, and signs as an agent. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { newKey } from '../../src/commands/key-file.ts'
import { findChromium, newVisit, openSuiteBrowser } from '../journeys/chromium.ts'
import { sharedGateway } from '../journeys/gateway.ts'

const executable = findChromium()

describe.skipIf(executable === undefined)('the client in Chromium', () => {
  const origin = sharedGateway()
  const browser = openSuiteBrowser()

  it('does what a browser may do, under the content policy of the pages', async () => {
    const { page, complaints } = await newVisit(browser(), origin)
    const serve = (path: string, file: string) =>
      page.route(path, (route) =>
        route.fulfill({ body: readFileSync(file, 'utf8'), contentType: 'text/javascript' }),
      )
    await serve('**/assets/client.js', 'src/client/.build/index.js')
    await serve('**/assets/in-browser.js?*', 'test/client/in-browser.js')
    await page.goto('/sign-in')
    const { keyId, publicKey, privateKey } = newKey()
    const { d = '' } = privateKey.export({ format: 'jwk' })
    const agentKey = JSON.stringify({ keyId, publicKey, privateKey: { ...publicKey, d } })
    const url = `/assets/in-browser.js?key=${encodeURIComponent(agentKey)}`
    await page.addScriptTag({ url, type: 'module' })
    await expect
      .poll(async () => [await page.title(), ...complaints].join('\n'), { timeout: 15_000 })
      .toMatch(/^\{/)
    const seen: unknown = JSON.parse(await page.title())
    expect(seen).toEqual({
      isGuest: true,
      hasToken: false,
      assets: 4,
      status: 'confirmed',
      code: 'policy_denied',
      listed: ['2'],
    })
    expect(complaints.filter((text) => !text.includes('403'))).toEqual([])
  })
})
