/** The consent page in a real browser, between real MCP clients of both eras and their first payment. */

import {
  Client as Client2026,
  StreamableHTTPClientTransport as Transport2026,
} from '@modelcontextprotocol/client'
import { Client as Client2025 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as Transport2025 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { keptAuthorization } from '../mcp/kept-authorization.ts'
import { findChromium, newVisit, openSuiteBrowser } from './chromium.ts'
import { sharedGateway } from './gateway.ts'
import { requestJson } from './people.ts'

const executable = findChromium()
if (executable === undefined)
  process.stderr.write('No Chromium here: the consent page is not tested. Set CHROMIUM_BIN.\n')

const REDIRECT = 'http://127.0.0.1:39998/callback'
const payee = '0x000000000000000000000000000000000000dEaD'

const newAuthorization = (open: (url: URL) => Promise<void>) =>
  keptAuthorization({ name: 'Invoice bot', redirectUrl: REDIRECT }, open)

describe.skipIf(executable === undefined)('the consent page in Chromium', () => {
  const origin = sharedGateway()
  const browser = openSuiteBrowser()

  /** Signs in on the way, ticks a spending scope, sets its limits and allows. @returns the redirect to the client. */
  const allow = async (page: Page, url: URL) => {
    await page.route(`${REDIRECT}*`, (route) => route.fulfill({ body: 'You can close this page.' }))
    await page.goto(url.href)
    await page.getByRole('button', { name: /guest/i }).click()
    await page.getByRole('heading', { name: 'Allow “Invoice bot”?' }).waitFor()
    expect(await page.locator('#redirect').textContent()).toBe('127.0.0.1:39998')
    expect(await page.getByLabel('See the wallet').isChecked()).toBe(true)
    expect(await page.getByLabel('Send stablecoins').isChecked()).toBe(false)
    await page.getByLabel('Send stablecoins').check()
    await page.getByRole('button', { name: 'Everyday' }).click()
    await page.getByText('Set the limits yourself').click()
    await page.getByLabel('Limit per payment').fill('4')
    await page.getByLabel('Ask for approval above').fill('2')
    const back = page.waitForRequest((request) => request.url().startsWith(REDIRECT))
    await page.getByRole('button', { name: 'Allow', exact: true }).click()
    return new URL((await back).url()).searchParams
  }

  const pay = (amount: string, key: string) => ({
    name: 'wallets_transfer',
    arguments: { destination: payee, amount, signature: 'sandbox', idempotency_key: key },
  })
  const readCode = ({ content }: Record<string, unknown>) => {
    const [first] = z.array(z.looseObject({ text: z.string() })).parse(content)
    const { code, status, approvalId } = z.looseObject({}).parse(JSON.parse(first?.text ?? '{}'))
    return { code, status, approvalId }
  }
  /** The members that clients of both eras have in common. */
  interface AnyClient {
    listTools(): Promise<{ tools: { name: string }[] }>
    callTool(call: ReturnType<typeof pay>): Promise<Record<string, unknown>>
    close(): Promise<void>
  }

  const connectors: Record<
    string,
    (
      provider: ReturnType<typeof newAuthorization>,
      back: () => Promise<URLSearchParams>,
    ) => Promise<AnyClient>
  > = {
    '2025': async (authProvider, back) => {
      const url = new URL('/mcp', origin)
      const first = new Transport2025(url, { authProvider })
      const client = new Client2025({ name: 'test', version: '1' })
      await expect(client.connect(first as never)).rejects.toThrow()
      await first.finishAuth((await back()).get('code') ?? '')
      const allowed = new Client2025({ name: 'test', version: '1' })
      await allowed.connect(new Transport2025(url, { authProvider }) as never)
      return allowed as AnyClient
    },
    '2026': async (authProvider, back) => {
      const url = new URL('/mcp', origin)
      const first = new Transport2026(url, { authProvider })
      const options = { capabilities: {}, versionNegotiation: { mode: 'auto' as const } }
      const client = new Client2026({ name: 'test', version: '1' }, options)
      await expect(client.connect(first)).rejects.toThrow()
      await first.finishAuth(await back())
      const allowed = new Client2026({ name: 'test', version: '1' }, options)
      await allowed.connect(new Transport2026(url, { authProvider }))
      return allowed as AnyClient
    },
  }

  it.each(['2025', '2026'])(
    'authorizes a client of %s for the ticked scopes; the owner approves its payment and revokes it',
    async (era) => {
      const { page, complaints } = await newVisit(browser(), origin)
      const opened: { back?: Promise<URLSearchParams> } = {}
      const provider = newAuthorization(async (url) => {
        // Only once: a client whose grant was revoked asks again.
        opened.back ??= allow(page, url)
      })
      const client = await connectors[era]?.(
        provider,
        async () => (await opened.back) ?? new URLSearchParams(),
      )
      if (client === undefined) throw new Error('unknown era')
      const names = (await client.listTools()).tools.map(({ name }) => name)
      expect(names).toContain('wallets_transfer')
      expect(names).not.toContain('x402_fx')
      expect(readCode(await client.callTool(pay('1', 'one')))).toMatchObject({ status: 'confirmed' })
      expect(readCode(await client.callTool(pay('5', 'two')))).toMatchObject({ code: 'policy_denied' })
      const waiting = readCode(await client.callTool(pay('3', 'three')))
      expect(waiting).toMatchObject({ code: 'approval_required' })

      const cookies = await page.context().cookies()
      const token = cookies.find(({ name }) => name === 'bursar_session')?.value ?? ''
      const owner = { headers: { authorization: `Bearer ${token}` } }
      const approved = await requestJson(origin, 'POST', `/api/approvals/${String(waiting.approvalId)}`, {
        ...owner,
        body: { decision: 'approve' },
      })
      expect(approved.status).toBe(200)
      expect(readCode(await client.callTool(pay('3', 'three')))).toMatchObject({ status: 'confirmed' })
      const { body } = await requestJson(origin, 'GET', '/api/agents/keys', owner)
      const [key] = z.array(z.looseObject({ agentId: z.string() })).parse(body.keys)
      await requestJson(origin, 'DELETE', `/api/agents/keys/${key?.agentId}`, owner)
      await expect(client.callTool(pay('1', 'four'))).rejects.toThrow()
      await client.close()
      expect(complaints).toEqual([])
      await page.context().close()
    },
    60_000,
  )
})
