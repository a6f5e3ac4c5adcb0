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
    })
    expect(status).toBe(200)
    const again = await send()
    expect([again.status, await again.json()]).toMatchObject([
      403,
      { code: 'approval_required', reason: 'rejected', approvalId: problem.approvalId },
    ])
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    const { body: wallet } = await owner.send('GET', '/api/wallets')
    expect(wallet.balances).toContainEqual(
      expect.objectContaining({ token: 'USDC', amount: '1000', held: '0' }),
    )
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
})
