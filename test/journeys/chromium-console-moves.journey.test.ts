/** A request whose money is on another chain, in Chromium: the person is told what moves, and what that costs, before the yes. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { findChromium } from './chromium.ts'
import { type ConsoleScene, openConsole, takePictures } from './console-scene.ts'
import { requestJson } from './people.ts'

describe.skipIf(findChromium() === undefined)('a payment from any chain in Chromium', () => {
  let scene: ConsoleScene
  beforeAll(async () => {
    scene = await openConsole({ CHAINS: 'base-sepolia,arbitrum-sepolia' })
  }, 120_000)
  afterAll(() => scene?.close())

  it('tells what moves first before the owner approves, and pays after it', async () => {
    const { gateway, owner, page } = scene
    const { body: made } = await requestJson(gateway.origin, 'POST', '/api/developer/keys', {
      headers: { authorization: `Bearer ${owner.token}` },
      body: {
        name: 'Courier',
        scopes: ['wallets:read', 'wallets:transfer'],
        policy: {
          perTransaction: { max: '50' },
          dailyBudget: { max: '100' },
          categories: { allow: ['transfer'] },
          approval: { above: '2', ttlSec: 600 },
        },
      },
    })
    const headers = { authorization: `Bearer ${z.string().parse(made.key)}` }
    const call = {
      headers: { ...headers, 'idempotency-key': 'moves-1' },
      body: {
        destination: `0x${'12'.repeat(20)}`,
        amount: '7',
        token: 'USDC',
        chain: 'arbitrum-sepolia',
        from: 'any',
      },
    }
    const { body: asked } = await requestJson(gateway.origin, 'POST', '/api/wallets/transfer', call)
    const id = z.string().parse(asked.approvalId)
    await page.goto(`/approvals/${id}`)
    const told = page.locator('#moves-first')
    await told.waitFor()
    expect(await told.textContent()).toMatch(
      /^7\.\d+ USDC moves from Base Sepolia to Arbitrum Sepolia first, in about 2 seconds\. Moving it costs at most 0\.0\d+ USDC, which counts on the budget\.$/,
    )
    await takePictures(page, 'approval-moves')
    await page.getByRole('button', { name: 'Approve', exact: true }).click()
    await page.getByText('Approved, and on its way').waitFor()
    await page.getByText(/comes from another chain, and it is paid as soon as that is there/).waitFor()
    const read = async () => {
      const { body } = await requestJson(gateway.origin, 'GET', `/api/approvals/${id}`, { headers })
      return z.looseObject({ status: z.string() }).parse(body).status
    }
    await expect.poll(read, { timeout: 30_000 }).toBe('approved')
    await takePictures(page, 'approval-moved')
  }, 120_000)
})
