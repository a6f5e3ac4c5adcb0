/**
 * An agent without a model: it follows only the `hint` of failures and the members of answers. It is denied, asks its
 * owner, and is paid exactly once; it stops at a mistyped address, withdraws what it no longer needs, and cancels its
 * order.
 */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { connectMcp } from '../mcp/client.ts'
import { newAgent } from './agent.ts'
import { sharedGateway } from './gateway.ts'
import { enrollMfa, newGuest, newMailbox, type Person, requestJson, signInByEmail } from './people.ts'

const origin = sharedGateway()
let owner: Person
let agentId: string
let mcp: Client

beforeEach(async () => {
  owner = await newGuest(origin)
  await enrollMfa(owner)
  const agent = await newAgent()
  const { body } = await owner.send('POST', '/api/agents/keys', {
    name: 'Invoice bot',
    publicKey: agent.jwk,
    scopes: ['wallets:read', 'wallets:transfer', 'investing:read', 'investing:trade'],
    policy: {
      perTransaction: { max: '50' },
      dailyBudget: { max: '100' },
      categories: { allow: ['transfer', 'invest'] },
    },
  })
  agentId = String(body.agentId)
  mcp = await connectMcp(origin, { fetch: agent.fetchLike })
})
afterEach(() => mcp.close())

const answer = z.looseObject({ code: z.string().optional(), hint: z.string().optional() })
const call = async (name: string, given: Record<string, unknown>) => {
  const { isError = false, content } = await mcp.callTool({ name, arguments: given })
  const [first] = z.array(z.object({ text: z.string() })).parse(content)
  return { isError, body: answer.parse(JSON.parse(first?.text ?? '')) }
}

/** Tools that a hint or a next step names; following any other advice fails the test. */
async function toolsNamedIn(hint: string | undefined): Promise<string[]> {
  const { tools } = await mcp.listTools()
  expect(hint).not.toMatch(/smaller|another (address|destination|token|rail)|lower ?case|(?<!never )split/i)
  return tools.map(({ name }) => name).filter((name) => new RegExp(`\\b${name}\\b`).test(hint ?? ''))
}

const balance = async () => {
  const { body } = await owner.send('GET', '/api/wallets')
  const { balances } = z
    .object({ balances: z.array(z.looseObject({ token: z.string(), amount: z.string() })) })
    .parse(body)
  return balances.find(({ token }) => token === 'USDC')?.amount
}
const invoice = { destination: `0x${'1'.repeat(40)}`, amount: '120.50', token: 'USDC' }

describe('an agent that follows hints', () => {
  it('orders, follows the order, and cancels it as the answer says', async () => {
    const order = { symbol: 'AAPL', side: 'buy', type: 'limit', limitPrice: '1', notional: '30' }
    // A guest's shares earned dividends before the guest came; they are paid in the first seconds.
    await expect
      .poll(async () => JSON.stringify((await owner.send('GET', '/api/investing/portfolio')).body.dividends))
      .toContain('"paid"')
    const portfolio = async () => (await call('investing_portfolio', {})).body.buyingPower
    const before = await portfolio()
    const placed = await call('investing_order', { ...order, idempotency_key: 'order' })
    expect(placed).toMatchObject({ isError: false, body: { status: 'accepted' } })
    expect(await portfolio()).not.toBe(before)
    const next = z.string().parse(placed.body.next)
    const id = /\bord_\w+/.exec(next)?.[0]
    expect(id).toBe(placed.body.id)
    const named = await toolsNamedIn(next)
    expect(named.sort()).toEqual(['investing_orders_cancel', 'investing_orders_list'])
    const [cancel = '', list = ''] = named
    expect((await call(list, {})).body).toMatchObject({ orders: [{ id, status: 'accepted' }] })
    expect(await call(cancel, { id })).toMatchObject({ isError: false, body: { status: 'canceled' } })
    expect((await call(list, {})).body).toMatchObject({ orders: [{ id, status: 'canceled' }] })
    expect(await portfolio()).toBe(before)
    const repeated = await call('investing_order', { ...order, idempotency_key: 'order' })
    expect(repeated.body).toMatchObject({ id, status: 'canceled', next: null, replayed: true })
  })

  it('is denied, asks, and is paid once after its owner approves with a second factor', async () => {
    const input = { ...invoice, idempotency_key: 'invoice-17' }
    const denied = await call('wallets_transfer', input)
    expect(denied).toMatchObject({ isError: true, body: { code: 'policy_denied' } })
    const [tool = ''] = await toolsNamedIn(denied.body.hint)
    expect(tool).toBe('approvals_request')

    const reason = 'Invoice 17 <b>is due</b>. Approve it at once!'
    const asked = await call(tool, { operation: 'wallets_transfer', input, reason })
    expect(asked).toMatchObject({
      isError: false,
      body: { status: 'pending', violations: [{ rule: 'per_transaction' }, { rule: 'daily_budget' }] },
    })
    const { approvalId: id, approvalUrl } = z
      .looseObject({ approvalId: z.string(), approvalUrl: z.string() })
      .parse(asked.body)
    expect((await call(tool, { operation: 'wallets_transfer', input, reason })).body).toMatchObject({
      approvalId: id,
    })
    expect(await toolsNamedIn(asked.body.hint)).toEqual(['approvals_get'])
    expect((await call('approvals_get', { id })).body).toMatchObject({ status: 'pending' })
    expect(await balance()).toBe('1000')

    const path = `/api${new URL(approvalUrl).pathname}`
    expect((await owner.send('GET', path)).body).toMatchObject({ reason, violations: expect.any(Array) })
    const decisions = [1, 2, 3].map(() =>
      owner.send('POST', path, { decision: 'approve', note: 'This once.' }),
    )
    expect((await Promise.all(decisions)).map(({ status }) => status)).toContain(200)
    const { body: done } = await call('approvals_get', { id })
    expect(done).toMatchObject({ status: 'approved', note: 'This once.', answer: { status: 'confirmed' } })
    const repeated = await call('wallets_transfer', input)
    expect(repeated).toMatchObject({ isError: false, body: { amount: '120.5' } })
    expect(await balance()).toBe('879.5')
    expect(await call('wallets_transfer', { ...input, idempotency_key: 'invoice-18' })).toMatchObject({
      body: { code: 'policy_denied' },
    })
  })

  it('stops at an address with a wrong checksum, and is told to ask the payee', async () => {
    const before = await balance()
    const mistyped = { ...invoice, amount: '1', destination: '0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed' }
    const refusal = await call('wallets_transfer', { ...mistyped, idempotency_key: 'typo' })
    expect(refusal).toMatchObject({
      isError: true,
      body: { code: 'invalid_request', issues: [{ path: 'destination' }] },
    })
    expect(refusal.body.hint).toMatch(/Ask the payee/)
    expect(await toolsNamedIn(refusal.body.hint)).toEqual([])
    const simulated = await call('policy_simulate', {
      spend: { category: 'transfer', amount: '1', counterparty: mistyped.destination },
    })
    expect(simulated.body.hint).toBe(refusal.body.hint)
    expect(await balance()).toBe(before)
  })

  it('withdraws what it no longer needs, which then cannot be approved', async () => {
    const asked = await call('approvals_request', {
      operation: 'wallets.transfer',
      input: { ...invoice, amount: 60 },
      reason: 'Maybe needed.',
    })
    const id = z.string().parse(asked.body.approvalId)
    expect((await call('approvals_withdraw', { id })).body).toMatchObject({ status: 'withdrawn' })
    const late = await owner.send('POST', `/api/approvals/${id}`, { decision: 'approve' })
    expect(late).toMatchObject({ status: 409, body: { code: 'conflict', reason: 'withdrawn' } })
  })

  it('is told about a pause, and nothing else', async () => {
    await owner.send('POST', `/api/agents/keys/${agentId}/pause`)
    const denied = await call('wallets_transfer', { ...invoice, amount: '1', idempotency_key: 'paused' })
    expect(denied.body.hint).toMatch(/The key is paused, .* tell the owner/)
    const asked = await call('approvals_request', {
      operation: 'wallets.transfer',
      input: invoice,
      reason: 'x',
    })
    expect(asked).toMatchObject({ isError: true, body: { code: 'insufficient_scope' } })
  })

  it('causes a mail to its owner within seconds, who may turn these mails off', async () => {
    const mailbox = newMailbox('grace')
    const grace = await signInByEmail(origin, mailbox)
    const own = await newAgent()
    const policy = {
      perTransaction: { max: '5' },
      dailyBudget: { max: '9' },
      categories: { allow: ['transfer'] },
    }
    const grant = { name: 'Bot', publicKey: own.jwk, scopes: ['wallets:transfer'], policy }
    expect((await grace.send('POST', '/api/agents/keys', grant)).status).toBe(200)
    const ask = async (amount: string) => {
      const body = JSON.stringify({
        operation: 'wallets.transfer',
        input: { ...invoice, amount },
        reason: 'Rent is due.\nhttps://evil.example',
      })
      const response = await own.fetch({ method: 'POST', url: `${origin}/api/approvals`, body })
      return z.looseObject({ approvalUrl: z.string() }).parse(await response.json()).approvalUrl
    }
    const outbox = z.looseObject({
      messages: z.array(z.looseObject({ destination: z.string(), code: z.string(), text: z.string() })),
    })
    const mails = async () =>
      outbox
        .parse((await requestJson(origin, 'GET', '/sandbox/outbox')).body)
        .messages.filter(({ destination, code }) => destination === mailbox && code === '')
        .map(({ text }) => text)
    const url = await ask('8.25')
    await expect.poll(mails, { timeout: 10_000 }).toHaveLength(1)
    const [mail] = await mails()
    expect(mail).toContain('Amount: 8.25 USDC (8.25 USD)')
    expect(mail).toContain('“Rent is due. https[:]//evil[.]example”')
    expect(mail).toContain(`Approve or reject it: ${url}\n`)
    const settings = '/api/notifications/settings'
    expect((await grace.send('PATCH', settings, { approvals: 'off' })).body).toEqual({ approvals: 'off' })
    expect((await grace.send('GET', settings)).body).toEqual({ approvals: 'off' })
  })
})
