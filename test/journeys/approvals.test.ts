/** Approvals end to end: an agent calls over MCP, its owner decides over REST, and both read the result. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Agent, newAgent } from './agent.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person } from './people.ts'

let gateway: Gateway
let owner: Person
let agent: Agent
let agentId: string
let mcp: Client

beforeAll(async () => {
  gateway = await startGateway({ CHAIN: 'simulated', RATE_MUTATIONS: '1000/60' })
  owner = await newGuest(gateway.origin)
  agent = await newAgent()
  const { body } = await owner.send('POST', '/api/agents/keys', {
    name: 'Invoice bot',
    publicKey: agent.jwk,
    scopes: ['wallets:read', 'wallets:transfer'],
    policy: {
      perTransaction: { max: '50' },
      dailyBudget: { max: '100' },
      categories: { allow: ['transfer'] },
      approval: { above: '10' },
    },
  })
  agentId = String(body.agentId)
  mcp = new Client({ name: 'test', version: '1' })
  const transport = new StreamableHTTPClientTransport(new URL('/mcp', gateway.origin), {
    fetch: agent.fetchLike,
  })
  // // The SDK's transport type declares optional members without `undefined`; the value comes from the SDK.
  await mcp.connect(transport as Parameters<Client['connect']>[0])
})
afterAll(async () => {
  await mcp?.close()
  await gateway?.stop()
})

const invoice = { destination: `0x${'1'.repeat(40)}`, amount: '25.50', signature: 'sandbox' }
const call = async (name: string, given: Record<string, unknown>) => {
  const { isError = false, content } = await mcp.callTool({ name, arguments: given })
  const [first] = z.array(z.object({ text: z.string() })).parse(content)
  return { isError, body: z.looseObject({}).parse(JSON.parse(first?.text ?? '')) }
}

describe('an agent that needs approval', () => {
  it('gets approval_required, stays pending, and gets its result once the owner approves', async () => {
    const simulated = await call('policy_simulate', { spend: { category: 'transfer', amount: '25.50' } })
    expect(simulated).toMatchObject({ isError: false, body: { decision: 'approval_required', usd: '25.5' } })

    const pay = () => call('wallets_transfer', { ...invoice, idempotency_key: 'invoice-17' })
    const refusal = await pay()
    expect(refusal).toMatchObject({
      isError: true,
      body: {
        code: 'approval_required',
        approvalUrl: expect.stringMatching(/^http:\/\/localhost:\d+\/approvals\/appr_/),
      },
    })
    const approvalId = String(refusal.body.approvalId)
    expect((await call('approvals_get', { id: approvalId })).body).toMatchObject({ status: 'pending' })
    expect((await pay()).body).toMatchObject({ code: 'approval_required', approvalId })

    const { body: waiting } = await owner.send('GET', '/api/approvals?status=pending')
    expect(waiting).toMatchObject({ approvals: [{ approvalId, agentId, input: { amount: '25.50' } }] })
    const approved = await owner.send('POST', `/api/approvals/${approvalId}`, { decision: 'approve' })
    expect(approved).toMatchObject({ status: 200, body: { status: 'approved', answer: { amount: '25.5' } } })

    expect((await call('approvals_get', { id: approvalId })).body).toEqual(approved.body)
    const paid = await pay()
    expect(paid).toMatchObject({ isError: false, body: { amount: '25.5', status: 'confirmed' } })
    const { body: wallet } = await owner.send('GET', '/api/wallets')
    expect(wallet.balances).toEqual(
      expect.arrayContaining([expect.objectContaining({ token: 'USDC', amount: '974.5', held: '0' })]),
    )
    expect((await owner.send('GET', `/api/agents/keys/${agentId}/usage`)).body).toMatchObject({
      usage: { used: '25.5', count: 1 },
    })
  })

  it('gets the same error over REST, and no money moves when the owner rejects', async () => {
    const send = () =>
      agent.fetch({
        method: 'POST',
        url: `${gateway.origin}/api/wallets/transfer`,
        body: JSON.stringify(invoice),
        idempotencyKey: 'invoice-18',
      })
    const first = await send()
    const problem = z.looseObject({ approvalId: z.string() }).parse(await first.json())
    expect([first.status, problem.code]).toEqual([403, 'approval_required'])
    const { status } = await owner.send('POST', `/api/approvals/${problem.approvalId}`, {
      decision: 'reject',
    })
    expect(status).toBe(200)
    const again = await send()
    expect([again.status, await again.json()]).toMatchObject([
      403,
      { code: 'approval_required', reason: 'rejected', approvalId: problem.approvalId },
    ])
    expect(again.headers.get('idempotency-replayed')).toBe('true')
  })

  it('is denied from the next call after a pause, over MCP and REST', async () => {
    await owner.send('POST', `/api/agents/keys/${agentId}/pause`)
    const small = { ...invoice, amount: '1' }
    const violations = [{ rule: 'paused' }]
    expect((await call('wallets_transfer', { ...small, idempotency_key: 'small-1' })).body).toMatchObject({
      code: 'policy_denied',
      violations,
    })
    const overRest = await agent.fetch({
      method: 'POST',
      url: `${gateway.origin}/api/wallets/transfer`,
      body: JSON.stringify(small),
    })
    expect(await overRest.json()).toMatchObject({ code: 'policy_denied', violations })
    await owner.send('PATCH', `/api/agents/keys/${agentId}`, { status: 'active' })
    expect((await call('wallets_transfer', { ...small, idempotency_key: 'small-2' })).isError).toBe(false)
  })
})
