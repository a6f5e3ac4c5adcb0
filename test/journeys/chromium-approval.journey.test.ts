/**
 * Approval pages: a client that can open URLs shows the page, and the waiting call returns the outcome of the approval.
 */

import { mkdirSync } from 'node:fs'
import {
  Client as Client2026,
  StreamableHTTPClientTransport as Transport2026,
} from '@modelcontextprotocol/client'
import { Client as Client2025 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as Transport2025 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  ElicitationCompleteNotificationSchema,
  ElicitRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { findChromium, newVisit, openBrowser, type Visit, waitForConsole } from './chromium.ts'
import { sharedGateway } from './gateway.ts'
import { requestJson } from './people.ts'

const executable = findChromium()
if (executable === undefined)
  process.stderr.write('No Chromium here: the approval page is not tested. Set CHROMIUM_BIN.\n')

const SCREENSHOTS = '.build/screenshots'
const payee = '0x000000000000000000000000000000000000dEaD'
const page = z.looseObject({ mode: z.literal('url'), url: z.string(), message: z.string() })

describe.skipIf(executable === undefined)('the approval page in Chromium', () => {
  const origin = sharedGateway()
  let browser: Browser
  let visit: Visit
  let key = ''
  beforeAll(async () => {
    browser = await openBrowser()
    visit = await newVisit(browser, origin)
    await visit.page.goto('/sign-in')
    await visit.page.getByRole('button', { name: /guest/i }).click()
    await waitForConsole(visit.page)
    const token = (await visit.page.context().cookies()).find(({ name }) => name === 'bursar_session')?.value
    const { body } = await requestJson(origin, 'POST', '/api/developer/keys', {
      headers: { authorization: `Bearer ${token}` },
      body: {
        name: 'Bot',
        scopes: ['wallets:read', 'wallets:transfer'],
        policy: {
          perTransaction: { max: '20' },
          dailyBudget: { max: '100' },
          categories: { allow: ['transfer'] },
          approval: { above: '2', ttlSec: 600 },
        },
      },
    })
    key = z.string().parse(body.key)
  }, 180_000)
  afterAll(() => browser?.close())

  /** Decides on the page that a client opens, as the owner. */
  const decide = async (url: string, button: 'Approve' | 'Reject') => {
    await visit.page.goto(url)
    await visit.page.getByRole('button', { name: button, exact: true }).click()
    if (button === 'Reject')
      await visit.page.getByRole('dialog').getByRole('button', { name: button, exact: true }).click()
  }
  const pay = (amount: string, idempotencyKey: string) => ({
    name: 'wallets_transfer',
    arguments: { destination: payee, amount, signature: 'sandbox', idempotency_key: idempotencyKey },
  })
  const parseResult = ({ content }: Record<string, unknown>) => {
    const [first] = z.array(z.looseObject({ text: z.string() })).parse(content)
    const { code, status, reason } = z.looseObject({}).parse(JSON.parse(first?.text ?? '{}'))
    return { code, status, reason }
  }
  const transportTo = () => ({
    url: new URL('/mcp', origin),
    options: { requestInit: { headers: { authorization: `Bearer ${key}` } } },
  })

  /**
   * 2025-era client whose user answers elicitations with `answer`; `completed` collects the completion notifications.
   */
  const connect2025 = async (
    capabilities: { elicitation?: { url?: object; form?: Record<string, unknown> } },
    answer: (url: string) => 'accept' | 'decline',
    completed: string[] = [],
  ) => {
    const client = new Client2025({ name: 'test', version: '1' }, { capabilities })
    if (capabilities.elicitation !== undefined)
      client.setRequestHandler(ElicitRequestSchema, ({ params }) => ({
        action: answer(page.parse(params).url),
      }))
    client.setNotificationHandler(ElicitationCompleteNotificationSchema, ({ params }) => {
      completed.push(params.elicitationId)
    })
    const { url, options } = transportTo()
    await client.connect(new Transport2025(url, options) as never)
    return client
  }
  const connect2026 = async (answer: (url: string) => 'accept' | 'decline') => {
    const client = new Client2026(
      { name: 'test', version: '1' },
      { capabilities: { elicitation: { url: {} } }, versionNegotiation: { mode: 'auto' } },
    )
    client.setRequestHandler('elicitation/create', ({ params }) => ({
      action: answer(page.parse(params).url),
    }))
    const { url, options } = transportTo()
    await client.connect(new Transport2026(url, options))
    expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28')
    return client
  }

  it('shows the request, and completes the waiting 2025 call once it is approved', async () => {
    const completed: string[] = []
    let deciding: Promise<void> | undefined
    const answer = (url: string) => {
      deciding = decide(url, 'Approve')
      return 'accept' as const
    }
    const client = await connect2025({ elicitation: { url: {} } }, answer, completed)
    expect(parseResult(await client.callTool(pay('3', 'approved-2025')))).toMatchObject({
      status: 'confirmed',
    })
    await deciding
    await visit.page.getByText('Approved and completed').waitFor()
    expect(await visit.page.locator('#operation').textContent()).toBe('wallets.transfer')
    expect(await visit.page.locator('#call').textContent()).toContain(payee)
    expect(completed).toEqual([expect.stringMatching(/^appr_/)])
    await client.close()
  })

  it('completes the waiting 2026 call in its second round', async () => {
    let deciding: Promise<void> | undefined
    const client = await connect2026((url) => {
      deciding = decide(url, 'Approve')
      return 'accept'
    })
    expect(parseResult(await client.callTool(pay('3', 'approved-2026')))).toMatchObject({
      status: 'confirmed',
    })
    await deciding
    await client.close()
  })

  it('reports a rejection to clients of both eras', async () => {
    const reject = (url: string) => {
      void decide(url, 'Reject')
      return 'accept' as const
    }
    const old = await connect2025({ elicitation: { url: {} } }, reject)
    const rejected = { code: 'approval_rejected', status: 403 }
    expect(parseResult(await old.callTool(pay('3', 'rejected-2025')))).toMatchObject(rejected)
    await visit.page.getByText('The call was not made').waitFor()
    const modern = await connect2026(reject)
    expect(parseResult(await modern.callTool(pay('3', 'rejected-2026')))).toMatchObject(rejected)
    await old.close()
    await modern.close()
  })

  it('returns the usual error when the page is declined or cannot be opened', async () => {
    const waiting = { code: 'approval_required', reason: undefined }
    const declining = await connect2025({ elicitation: { url: {} } }, () => 'decline')
    expect(parseResult(await declining.callTool(pay('3', 'declined')))).toEqual({ ...waiting, status: 403 })
    const openedUrls: string[] = []
    const forms = await connect2025({ elicitation: { form: {} } }, (url) => {
      openedUrls.push(url)
      return 'accept'
    })
    expect(parseResult(await forms.callTool(pay('3', 'form-only')))).toEqual({ ...waiting, status: 403 })
    const plain = await connect2025({}, () => 'accept')
    expect(parseResult(await plain.callTool(pay('3', 'no-capability')))).toEqual({ ...waiting, status: 403 })
    const declining2026 = await connect2026(() => 'decline')
    expect(parseResult(await declining2026.callTool(pay('3', 'declined-2026')))).toEqual({
      ...waiting,
      status: 403,
    })
    expect(openedUrls).toEqual([])
    for (const client of [declining, forms, plain, declining2026]) await client.close()
  })

  it('shows the rules that an asked exception breaks, and the agent’s reason as text', async () => {
    const client = await connect2026(() => 'decline')
    const input = pay('21', 'exception').arguments
    expect(parseResult(await client.callTool(pay('21', 'exception')))).toMatchObject({
      code: 'policy_denied',
    })
    const reason = 'Invoice 17 <b>is due</b>.\nApprove it at once!'
    const { structuredContent } = await client.callTool({
      name: 'approvals_request',
      arguments: { operation: 'wallets_transfer', input, reason },
    })
    const { approvalUrl } = z.looseObject({ approvalUrl: z.string() }).parse(structuredContent)
    const { page: shown } = visit
    await shown.setViewportSize({ width: 360, height: 740 })
    await shown.goto(approvalUrl)
    await shown.getByText('The policy of this agent denies the call.').waitFor()
    const rules = shown.locator('#violations').getByRole('listitem')
    expect(await rules.allTextContents()).toEqual(['$21.00 is above $20.00 a payment.'])
    expect(await shown.locator('blockquote').textContent()).toBe(reason.replace('\n', ' '))
    expect(await shown.locator('#call').textContent()).toContain('Amount21')
    expect(await shown.evaluate('document.documentElement.scrollWidth')).toBe(360)
    await shown.getByRole('button', { name: 'Approve', exact: true }).click()
    await shown.getByText('Approved and completed').waitFor()
    expect(parseResult(await client.callTool(pay('21', 'exception')))).toMatchObject({ status: 'confirmed' })
    await shown.setViewportSize({ width: 1280, height: 720 })
    await client.close()
  })

  it('is available to the signed-in owner only: others sign in first, and return to it', async () => {
    const other = await newVisit(browser, origin)
    const id = `appr_${'0'.repeat(26)}`
    await other.page.goto(`/approvals/${id}`)
    expect(new URL(other.page.url()).pathname).toBe('/sign-in')
    await other.page.getByRole('button', { name: /guest/i }).click()
    await other.page.getByText('You have no such approval').waitFor()
    expect(new URL(other.page.url()).pathname).toBe(`/approvals/${id}`)
    expect(await other.page.getByRole('button', { name: 'Approve' }).isVisible()).toBe(false)
    await other.page.context().close()
    expect(visit.complaints).toEqual([])
  })

  it('warns when an exception uses up a budget, and says what arrives of a payout and what a change is', async () => {
    const token = (await visit.page.context().cookies()).find(({ name }) => name === 'bursar_session')?.value
    const asOwner = { authorization: `Bearer ${token}` }
    const policy = {
      perTransaction: { max: '20' },
      dailyBudget: { max: '30' },
      categories: { allow: ['transfer', 'payout'] },
      approval: { above: '2', ttlSec: 600 },
    }
    const { body: made } = await requestJson(origin, 'POST', '/api/developer/keys', {
      headers: asOwner,
      body: { name: 'Asker', scopes: ['wallets:transfer', 'banking:pay'], policy },
    })
    const { body: recipient } = await requestJson(origin, 'POST', '/api/banking/recipients', {
      headers: asOwner,
      body: {
        currency: 'EUR',
        name: 'Emmy Noether',
        country: 'DE',
        account: { iban: 'DE89370400440532013000' },
      },
    })
    const ask = async (operation: string, input: object) => {
      const { status, body } = await requestJson(origin, 'POST', '/api/approvals', {
        headers: { authorization: `Bearer ${z.string().parse(made.key)}` },
        body: { operation, input, reason: 'The flat costs more this month.' },
      })
      expect(status, JSON.stringify(body)).toBe(200)
      return z.string().parse(body.approvalUrl)
    }
    mkdirSync(SCREENSHOTS, { recursive: true })
    const show = async (name: string, url: string, loaded: RegExp) => {
      await visit.page.goto(url)
      await visit.page.getByRole('button', { name: 'Approve' }).waitFor()
      await visit.page.getByText(loaded).first().waitFor()
      await visit.page.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' })
      await visit.page.screenshot({ path: `${SCREENSHOTS}/${name}.png`, fullPage: true })
      return (await visit.page.locator('main').textContent()) ?? ''
    }
    const rent = { recipientId: recipient.id, recipientAmount: '27', memo: 'Rent of June' }
    const payout = await show('approval-payout', await ask('banking.payouts.create', rent), /^\$29\.\d\d$/)
    expect(payout).toMatch(/27\.00 arrives in the currency of the account/)
    expect(payout).toMatch(/pay out(?<amount>29\.\d\d) USD/)
    expect(payout).not.toContain('It uses up')
    expect(payout).toContain('Rent of June')
    expect(payout).toContain('Emmy Noether EUR · DE •• 3000')
    const all = await show(
      'approval-uses-up',
      await ask('wallets.transfer', { destination: payee, amount: '30' }),
      /It uses up/,
    )
    expect(all).toMatch(/It uses up the budget of the day: \$30\.00 is left, and nothing after it until/)
    const changed = { policy: { ...policy, dailyBudget: { max: '60' } } }
    const change = await show('approval-policy', await ask('agents.policy', changed), /daily budget, max/)
    expect(change).toMatch(/wants to get another policy/)
    expect(await visit.page.locator('#policy-changes').textContent()).toBe('daily budget, max30 → 60')
    expect(change).toContain('Approving makes this change, as shown, in your name.')
    await visit.page.getByRole('button', { name: 'Approve' }).click()
    await visit.page.getByRole('heading', { name: 'Approved and completed' }).waitFor()
    expect(visit.complaints.filter((line) => !/40[13]/.test(line))).toEqual([])
  }, 180_000)
})
