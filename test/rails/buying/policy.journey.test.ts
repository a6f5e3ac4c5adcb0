/** Purchases under a policy: sellers by name, sellers that change, approvals, pauses and rails. */

import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { type Agent, newAgent } from '../../journeys/agent.ts'
import { type Gateway, startGateway } from '../../journeys/gateway.ts'
import { enrollMfa, newGuest, type Person, requestJson, signInByEmail } from '../../journeys/people.ts'
import { hasAnvil } from '../selling/x402/world.ts'
import { type FlakySellers, OTHER, SELLER, SOLD, startFlakySellers } from './flaky-sellers.ts'

const credentials = z.object({ chain: z.object({ rpcUrl: z.string() }) })
const approval = z.looseObject({ approvalId: z.string() })

const policy = {
  perTransaction: { max: '1' },
  dailyBudget: { max: '5' },
  categories: { allow: ['x402'] },
}

describe.skipIf(!hasAnvil())('purchases under a policy', () => {
  let gateway: Gateway
  let sellers: FlakySellers
  let owner: Person

  beforeAll(async () => {
    gateway = await startGateway({ RATE_MUTATIONS: '100000/60' })
    const { chain } = credentials.parse(
      (await requestJson(gateway.origin, 'GET', '/sandbox/credentials')).body,
    )
    sellers = await startFlakySellers(chain.rpcUrl)
    owner = await newGuest(gateway.origin)
  }, 120_000)
  afterAll(async () => {
    await sellers?.close()
    await gateway?.stop()
  }, 60_000)

  const newBuyer = async (more: object = {}) => {
    const agent: Agent = await newAgent()
    const { status, body } = await owner.send('POST', '/api/agents/keys', {
      name: 'Buyer',
      publicKey: agent.jwk,
      scopes: ['purchases:pay'],
      policy: { ...policy, ...more },
    })
    if (status !== 200) throw new Error(`${status} ${String(body.detail)}`)
    const send = async (method: string, path: string, input?: object, idempotencyKey?: string) => {
      const response = await agent.fetch({
        method,
        url: `${gateway.origin}${path}`,
        ...(input === undefined ? {} : { body: JSON.stringify(input) }),
        ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
      })
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    }
    const buy = (run: string, idempotencyKey?: string) =>
      send(
        'POST',
        '/api/purchases',
        { url: `${sellers.origin}/honest/${run}`, maxAmount: '0.01' },
        idempotencyKey,
      )
    return { id: String(body.agentId), send, buy }
  }

  it('denies sellers that the policy does not allow', async () => {
    const denied = await newBuyer({ sellers: { deny: [sellers.origin] } })
    expect((await denied.buy('a')).body).toMatchObject({
      code: 'policy_denied',
      violations: [{ rule: 'seller', requested: sellers.origin }],
    })
    const others = await newBuyer({ sellers: { allow: ['*.example.com'] } })
    expect((await others.buy('a')).body).toMatchObject({ code: 'policy_denied' })
    const allowed = await newBuyer({ sellers: { allow: [sellers.origin] } })
    expect((await allowed.buy('a')).body).toMatchObject({ status: 'delivered' })
  })

  it('knows a denied seller however its name was written', async () => {
    const loopback = sellers.origin.replace('127.0.0.1', 'LOCALHOST')
    expect((await (await newBuyer({ sellers: { deny: [loopback] } })).buy('a')).body).toMatchObject({
      code: 'policy_denied',
      violations: [{ rule: 'seller' }],
    })
    const names = [
      ['https://evil.example:443', 'https://evil.example'],
      ['https://evil.example.', 'https://evil.example'],
      ['https://böse.example', 'https://xn--bse-sna.example'],
      ['https://[2001:4860:4860:0:0:0:0:8888]', 'https://[2001:4860:4860::8888]'],
      ['*.Böse.example', 'https://a.xn--bse-sna.example'],
    ] as const
    for (const [written, origin] of names) {
      const buyer = await newBuyer({ sellers: { deny: [written] } })
      const bought = await buyer.send('POST', '/api/purchases', { url: `${origin}/x`, maxAmount: '0.01' })
      expect([written, bought]).toMatchObject([
        written,
        { status: 403, body: { code: 'policy_denied', violations: [{ rule: 'seller', requested: origin }] } },
      ])
    }
    for (const name of [
      'http://evil.example',
      'https://evil..example',
      'https://evil.example\\.good.example',
    ]) {
      const refused = await newBuyer({ sellers: { deny: [name] } }).catch((error: unknown) => String(error))
      expect(refused).toContain('400')
    }
  })

  it('asks the owner when a known seller names another payee, and pays exactly what was approved', async () => {
    const buyer = await newBuyer({ approval: { above: '1' } })
    expect((await buyer.buy('payee')).body).toMatchObject({ status: 'delivered' })
    sellers.setTerms('payee', { payTo: OTHER, amount: '1000' })
    const asked = await buyer.buy('payee', 'payee-1')
    expect(asked).toMatchObject({ status: 403, body: { code: 'approval_required' } })
    const { approvalId } = approval.parse(asked.body)
    await owner.send('POST', `/api/approvals/${approvalId}`, { decision: 'approve' })
    await vi.waitFor(async () => {
      const { body } = await buyer.send('GET', `/api/approvals/${approvalId}`)
      expect(body.answer).toMatchObject({ status: 'delivered', charged: '0.001', payTo: OTHER })
    })
    expect((await buyer.buy('payee', 'payee-1')).body).toMatchObject({ status: 'delivered', replayed: true })
  })

  it('erases what was delivered and sent, and keeps the payment', async () => {
    const buyer = await newBuyer({ approval: { above: '1' } })
    await buyer.buy('private')
    sellers.setTerms('private', { payTo: OTHER, amount: '1000' })
    const input = {
      url: `${sellers.origin}/honest/private`,
      maxAmount: '0.01',
      headers: { 'X-Note': 'private note' },
    }
    const asked = await buyer.send('POST', '/api/purchases', input, 'private')
    const { approvalId } = approval.parse(asked.body)
    await owner.send('POST', `/api/approvals/${approvalId}`, { decision: 'approve' })
    const readApproval = () => buyer.send('GET', `/api/approvals/${approvalId}`)
    // What was delivered is kept with the purchase only.
    await vi.waitFor(async () =>
      expect((await readApproval()).body).toMatchObject({
        answer: { status: 'delivered', response: null },
        input: { headers: input.headers },
      }),
    )
    const again = await buyer.send('POST', '/api/purchases', input, 'private')
    expect(JSON.stringify(again.body.response)).toContain(SOLD)
    const path = `/api/purchases/${String(again.body.purchaseId)}`
    expect(JSON.stringify((await buyer.send('GET', path)).body.response)).toContain(SOLD)
    expect((await owner.send('DELETE', '/api/compliance/personal-data')).status).toBe(200)
    expect((await buyer.send('GET', path)).body).toMatchObject({
      status: 'delivered',
      charged: '0.001',
      response: null,
    })
    expect((await readApproval()).body.input).toEqual({ url: input.url, maxAmount: '0.01' })
    expect((await buyer.send('GET', `${path}/evidence`)).status).toBe(200)
  })

  it('pays nothing when the terms change between the approval and the payment', async () => {
    const buyer = await newBuyer({ approval: { above: '1' } })
    await buyer.buy('rise')
    sellers.setTerms('rise', { payTo: SELLER, amount: '1200' })
    const asked = await buyer.buy('rise', 'rise-1')
    expect(asked.body.code).toBe('approval_required')
    sellers.setTerms('rise', { payTo: SELLER, amount: '1300' })
    const { approvalId } = approval.parse(asked.body)
    await owner.send('POST', `/api/approvals/${approvalId}`, { decision: 'approve' })
    await vi.waitFor(async () => {
      const { body } = await buyer.send('GET', `/api/approvals/${approvalId}`)
      expect(body.problem).toMatchObject({ code: 'terms_not_payable', reason: 'terms_changed' })
    })
  })

  it('denies changed terms by their own codes where nobody can be asked', async () => {
    const buyer = await newBuyer()
    await buyer.buy('codes')
    sellers.setTerms('codes', { payTo: SELLER, amount: '1100' })
    expect((await buyer.buy('codes')).body).toMatchObject({ status: 'delivered', charged: '0.0011' })
    sellers.setTerms('codes', { payTo: SELLER, amount: '1211' })
    expect((await buyer.buy('codes')).body).toMatchObject({ status: 403, code: 'price_changed' })
    sellers.setTerms('codes', { payTo: OTHER, amount: '1000' })
    expect((await buyer.buy('codes')).body).toMatchObject({ status: 403, code: 'payee_changed' })
    sellers.setTerms('codes', { payTo: OTHER, amount: '9000' })
    expect((await buyer.buy('codes')).body).toMatchObject({ status: 403, code: 'policy_denied' })
  })

  it('counts purchases in the budget, and gives back what was not paid', async () => {
    const buyer = await newBuyer({ dailyBudget: { max: '5', maxCount: 2 } })
    const url = `${sellers.origin}/changes/budget`
    for (let round = 0; round < 3; round += 1)
      expect((await buyer.send('POST', '/api/purchases', { url, maxAmount: '0.01' })).body.code).toBe(
        'terms_not_payable',
      )
    expect((await buyer.buy('budget-1')).body).toMatchObject({ status: 'delivered' })
    expect((await buyer.buy('budget-2')).body).toMatchObject({ status: 'delivered' })
    expect((await buyer.buy('budget-3')).body).toMatchObject({ code: 'policy_denied' })
  })

  it('does not ask a seller for a key that may not buy from it', async () => {
    let asked = 0
    const count = () => sellers.interrupt('unasked', 'asked', async () => (asked += 1))
    count()
    const readViolations = async (buyer: Awaited<ReturnType<typeof newBuyer>>, idempotencyKey?: string) => {
      const { body } = await buyer.buy('unasked', idempotencyKey)
      const denied = z.object({
        code: z.literal('policy_denied'),
        decisionId: z.string(),
        violations: z.array(z.object({ rule: z.string() })),
      })
      return denied
        .loose()
        .parse(body)
        .violations.map(({ rule }) => rule)
    }
    const noPayee = { counterparties: { allow: [SELLER], newPayeeCooldownSec: 60 } }
    const denied = { sellers: { deny: [sellers.origin] }, ...noPayee }
    expect(await readViolations(await newBuyer(denied))).toEqual(['seller'])
    const without = { categories: { allow: ['transfer'] }, sellers: { allow: ['*.example.com'] } }
    expect(await readViolations(await newBuyer(without))).toEqual(['category', 'seller'])
    expect(await readViolations(await newBuyer({ assets: ['EURC'] }))).toEqual(['asset'])
    const paused = await newBuyer()
    const bought = await paused.buy('before-the-pause', 'earlier')
    expect(bought.body).toMatchObject({ status: 'delivered' })
    await owner.send('POST', `/api/agents/keys/${paused.id}/pause`)
    expect(await readViolations(paused, 'during')).toEqual(['paused'])
    expect((await paused.buy('before-the-pause', 'earlier')).body).toEqual({ ...bought.body, replayed: true })
    expect(asked).toBe(0)
    // What the owner allows once is bought, whatever the policy says.
    const buyer = await newBuyer({ sellers: { deny: [sellers.origin] } })
    const url = `${sellers.origin}/honest/allowed-once`
    const wanted = await buyer.send('POST', '/api/approvals', {
      operation: 'purchases.buy',
      input: { url, maxAmount: '0.01' },
      reason: 'The owner reads it.',
    })
    expect(wanted.status).toBe(200)
    expect((await newBuyer().then((other) => other.buy('unasked'))).body).toMatchObject({
      code: 'seller_failed',
    })
    expect(asked).toBe(1)
  })

  it('pays nothing for a paused key or a sanctioned payee', async () => {
    const buyer = await newBuyer()
    sellers.setTerms('bad', { payTo: `0x${'1'.repeat(36)}9999`, amount: '1000' })
    expect((await buyer.buy('bad')).body).toMatchObject({ status: 403, code: 'aml_blocked' })
    await owner.send('POST', `/api/agents/keys/${buyer.id}/pause`)
    expect((await buyer.buy('paused')).body).toMatchObject({ status: 403, code: 'policy_denied' })
  })

  it('fills the purse within the budget of its key, whatever its chunk', async () => {
    const buyer = await newBuyer({ perTransaction: { max: '1' }, dailyBudget: { max: '2' } })
    const path = `/api/agents/keys/${buyer.id}`
    expect((await owner.send('PATCH', path, { purse: { chunk: '900' } })).status).toBe(200)
    expect((await buyer.buy('budget')).body).toMatchObject({ status: 'delivered', charged: '0.001' })
    const { body } = await owner.send('GET', '/api/wallets')
    const purses = z.array(z.looseObject({ agentId: z.string().nullable(), amount: z.string() }))
    const filled = purses.parse(body.purse).find(({ agentId }) => agentId === buyer.id)
    expect(filled?.amount).toBe('1.999')
  })

  it('fills the purse within the allowance on chain of a wallet that belongs to its owner', async () => {
    const person = await newGuest(gateway.origin)
    const key = privateKeyToAccount(generatePrivateKey())
    const { body: asked } = await person.send('POST', '/api/wallets/signers', { address: key.address })
    const signature = await key.signTypedData(asked.typedData as never)
    const signed = await person.send('POST', '/api/wallets/signers', { address: key.address, signature })
    expect(signed.status).toBe(200)
    const agent = await newAgent()
    const { body } = await person.send('POST', '/api/agents/keys', {
      name: 'Buyer',
      publicKey: agent.jwk,
      scopes: ['purchases:pay'],
      policy,
    })
    await person.send('PATCH', `/api/agents/keys/${String(body.agentId)}`, { purse: { chunk: '1000' } })
    const buy = async (run: string) => {
      const response = await agent.fetch({
        method: 'POST',
        url: `${gateway.origin}/api/purchases`,
        body: JSON.stringify({ url: `${sellers.origin}/honest/${run}`, maxAmount: '0.01' }),
      })
      return response.json()
    }
    expect(await buy('owned')).toMatchObject({ status: 'delivered', charged: '0.001' })
    const { body: wallet } = await person.send('GET', '/api/wallets')
    const { purse } = z.object({ purse: z.array(z.looseObject({ amount: z.string() })) }).parse(wallet)
    // The wallet has more than that; the chain lets the agent have no more in a day.
    expect(Number(purse[0]?.amount)).toBeGreaterThan(0)
    expect(Number(purse[0]?.amount)).toBeLessThan(1000)
    expect(await buy('owned-2')).toMatchObject({ status: 'delivered' })
  })

  it('is switched off with its rail', async () => {
    const admin = await signInByEmail(gateway.origin, 'admin@example.com')
    await admin.send('POST', '/sandbox/admin', {})
    await enrollMfa(admin)
    const rail = await admin.send('PUT', '/api/rails/x402-purchases/controls', { enabled: false })
    expect(rail.status).toBe(200)
    const buyer = await newBuyer()
    expect((await buyer.buy('rail')).body).toMatchObject({ status: 403, code: 'rail_disabled' })
  })
})
