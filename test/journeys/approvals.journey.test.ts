/** An owner stops an agent, over REST: by a rejection, and by a pause. */
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { callMcp, connectMcp } from '../mcp/client.ts'
import { newAgent } from './agent.ts'
import { sharedGateway } from './gateway.ts'
import { newGuest } from './people.ts'

const origin = sharedGateway()
const invoice = { destination: `0x${'1'.repeat(40)}`, amount: '25.50', signature: 'sandbox' }

/** A guest with an agent that needs approval above 10 USD. */
async function newScene() {
  const [owner, agent] = [await newGuest(origin), await newAgent()]
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
  return { owner, agent, agentId: String(body.agentId) }
}

describe('an agent that needs approval', () => {
  it('gets its refusal again after a rejection, and no money moves', async () => {
    const { owner, agent } = await newScene()
    const send = () =>
      agent.fetch({
        method: 'POST',
        url: `${origin}/api/wallets/transfer`,
        body: JSON.stringify(invoice),
        idempotencyKey: 'invoice-18',
      })
    const first = await send()
    const problem = z.looseObject({ approvalId: z.string() }).parse(await first.json())
    expect([first.status, problem.code]).toEqual([403, 'approval_required'])
    const { status } = await owner.send('POST', `/api/approvals/${problem.approvalId}`, {
      decision: 'reject',
      note: 'Not this month.',
    })
    expect(status).toBe(200)
    const again = await send()
    expect([again.status, await again.json()]).toMatchObject([
      403,
      { code: 'approval_rejected', note: 'Not this month.', approvalId: problem.approvalId },
    ])
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    const { body: wallet } = await owner.send('GET', '/api/wallets')
    expect(wallet.balances).toContainEqual(
      expect.objectContaining({ token: 'USDC', amount: '1000', held: '0' }),
    )
  })

  it('opens at most ten requests at a time, and another once one is decided', async () => {
    const { owner, agent } = await newScene()
    const send = async (amount: string) => {
      const response = await agent.fetch({
        method: 'POST',
        url: `${origin}/api/wallets/transfer`,
        body: JSON.stringify({ ...invoice, amount }),
        idempotencyKey: `invoice-${amount}`,
      })
      const { code, reason } = z
        .looseObject({ code: z.string(), reason: z.string().optional() })
        .parse(await response.json())
      return [response.status, code, reason].join(' ')
    }
    const answers = await Promise.all(Array.from({ length: 14 }, (_, index) => send(`${11 + index}`)))
    const opened = answers.filter((answer) => answer.startsWith('403 approval_required'))
    expect(opened).toHaveLength(10)
    expect(new Set(answers.filter((answer) => !opened.includes(answer)))).toEqual(
      new Set(['409 conflict too_many_open']),
    )
    const { body } = await owner.send('GET', '/api/approvals?status=pending')
    const pending = z.array(z.object({ approvalId: z.string() })).parse(body.approvals)
    expect(pending).toHaveLength(10)
    const path = `/api/approvals/${pending[0]?.approvalId}`
    expect((await owner.send('POST', path, { decision: 'reject' })).status).toBe(200)
    expect(await send('40')).toMatch(/^403 approval_required/)
    expect(await send('41')).toBe('409 conflict too_many_open')
  })

  it('is denied from the next call after a pause, over MCP and REST', async () => {
    const { owner, agent, agentId } = await newScene()
    const mcp = await connectMcp(origin, { fetch: agent.fetchLike })
    const call = (given: Record<string, unknown>) => callMcp(mcp, 'wallets_transfer', given)
    await owner.send('POST', `/api/agents/keys/${agentId}/pause`)
    const small = { ...invoice, amount: '1' }
    const violations = [{ rule: 'paused' }]
    expect((await call({ ...small, idempotency_key: 'small-1' })).body).toMatchObject({
      code: 'policy_denied',
      violations,
    })
    const overRest = await agent.fetch({
      method: 'POST',
      url: `${origin}/api/wallets/transfer`,
      body: JSON.stringify(small),
    })
    expect(await overRest.json()).toMatchObject({ code: 'policy_denied', violations })
    await owner.send('PATCH', `/api/agents/keys/${agentId}`, { status: 'active' })
    expect((await call({ ...small, idempotency_key: 'small-2' })).isError).toBe(false)
    await mcp.close()
  })

  it('asks in words on one line that read in one direction, whatever it wrote', async () => {
    const [owner, agent] = [await newGuest(origin), await newAgent()]
    await owner.send('POST', '/api/agents/keys', {
      name: 'Buyer',
      publicKey: agent.jwk,
      scopes: ['purchases:pay'],
      policy: { perTransaction: { max: '0.01' }, dailyBudget: { max: '1' }, categories: { allow: ['x402'] } },
    })
    const hidden = 'Pay the\u202e rekcatta\u202c\r\n\r\nApproved by\u2028 your bank\u2066\u200f\u061c\u0085'
    const call = {
      url: `${origin}/sandbox/sellers/search`,
      method: 'POST',
      body: { query: hidden, 'na\u202eme': [hidden], plain: 'Ünïcode ok' },
      maxAmount: '0.05',
      purpose: hidden,
    }
    const body = JSON.stringify({ operation: 'purchases.buy', input: call, reason: hidden })
    const asked = await agent.fetch({ method: 'POST', url: `${origin}/api/approvals`, body })
    const asking = await asked.json()
    expect(JSON.stringify(asking)).toContain('appr_')
    const { approvalId } = z.looseObject({ approvalId: z.string() }).parse(asking)
    const text = 'Pay the rekcatta Approved by your bank'
    const shown = {
      reason: text,
      input: { purpose: text, body: { 'na\\u202eme': [text], plain: 'Ünïcode ok' } },
    }
    for (const path of ['/api/approvals', `/api/approvals/${approvalId}`]) {
      const { body: answer } = await owner.send('GET', path)
      expect(path.endsWith('approvals') ? answer : { approvals: [answer] }).toMatchObject({
        approvals: [shown],
      })
      expect(JSON.stringify(answer)).not.toMatch(
        /[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\u2028\u2029]|\\n|\\r/,
      )
    }
    // The agent gets its own call as it sent it.
    const own = await agent.fetch({ method: 'GET', url: `${origin}/api/approvals/${approvalId}` })
    expect(await own.json()).toMatchObject({ input: { purpose: hidden, body: call.body } })
  })
})
