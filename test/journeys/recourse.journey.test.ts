/** Money back over HTTP and MCP, from the sandbox's sellers: with real payments, by people and agents. */
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { hasAnvil } from '../rails/selling/x402/world.ts'
import { type Agent, newAgent } from './agent.ts'
import { sharedGateway } from './gateway.ts'
import { newGuest, type Person } from './people.ts'

const policy = {
  perTransaction: { max: '1' },
  dailyBudget: { max: '5' },
  categories: { allow: ['x402'] },
}

const SLOW = { timeout: 20_000, interval: 200 }

describe.skipIf(!hasAnvil())('recourse', () => {
  const origin = sharedGateway()
  let owner: Person
  let agent: Agent
  let other: Agent

  const newBuyer = async (scopes: readonly string[]) => {
    const made = await newAgent()
    const { status } = await owner.send('POST', '/api/agents/keys', {
      name: 'Buyer',
      publicKey: made.jwk,
      scopes,
      policy,
    })
    expect(status).toBe(200)
    return made
  }
  beforeAll(async () => {
    owner = await newGuest(origin)
    agent = await newBuyer(['purchases:pay', 'wallets:read'])
    other = await newBuyer(['wallets:read', 'wallets:transfer'])
  }, 120_000)

  const ask = async (by: Agent, method: string, path: string, body?: object, idempotencyKey?: string) => {
    const response = await by.fetch({
      method,
      url: `${origin}${path}`,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  const buy = async (name: string) => {
    const url = `${origin}/sandbox/sellers/${name}`
    const { body } = await ask(agent, 'POST', '/api/purchases', { url, maxAmount: '0.05' }, `${name}-1`)
    return body
  }
  const open = (id: unknown, reason = 'not_delivered', by = agent) =>
    ask(by, 'POST', '/api/recourse', { object: { kind: 'purchase', id }, reason })
  const read = async (id: unknown) => (await ask(agent, 'GET', `/api/recourse/${String(id)}`)).body
  const usedToday = async () => {
    const { body } = await ask(agent, 'GET', '/api/agents/self')
    return z.object({ usage: z.object({ used: z.string() }) }).parse(body).usage.used
  }

  it('turns "I paid and got nothing" into a recovered payment with two calls', async () => {
    const before = await usedToday()
    const bought = await buy('refunds')
    expect(bought).toMatchObject({ status: 'undelivered', charged: '0.01' })
    expect(await usedToday()).not.toBe(before)
    const opened = await open(bought.purchaseId)
    expect(opened.status).toBe(200)
    expect(opened.body).toMatchObject({ claimed: '0.01', asset: 'USDC' })
    await vi.waitFor(async () => {
      expect(await read(opened.body.recourseId)).toMatchObject({
        status: 'recovered',
        route: 'refund_request',
        recovered: '0.01',
        delivered: false,
      })
    }, SLOW)
    expect(await usedToday()).toBe(before)
    const purchase = await ask(agent, 'GET', `/api/purchases/${String(bought.purchaseId)}`)
    expect(purchase.body).toMatchObject({ recourseId: opened.body.recourseId, refunded: '0.01' })
    const { body: activity } = await owner.send('GET', '/api/activity?kind=deposit')
    expect(activity.entries).toContainEqual(
      expect.objectContaining({
        direction: 'in',
        amount: '0.01',
        refundOf: { kind: 'purchase', id: bought.purchaseId },
      }),
    )
    // The same call answers the same, whatever its reason.
    expect((await open(bought.purchaseId, 'fraudulent')).body).toEqual(await read(opened.body.recourseId))
    const { body: events } = await owner.send('GET', '/api/events?limit=100')
    const types = z
      .array(z.looseObject({ type: z.string(), object: z.looseObject({ id: z.string() }) }))
      .parse(events.events)
      .filter(({ object }) => object.id === opened.body.recourseId)
      .map(({ type }) => type)
    expect(new Set(types)).toEqual(new Set(['recourse.opened', 'recourse.step', 'recourse.recovered']))
  }, 60_000)

  it('is refused by a seller that refuses, and impossible with one that declares nothing', async () => {
    const refused = await open((await buy('refuses-refund')).purchaseId)
    expect(refused.body).toMatchObject({ status: 'refused', route: 'refund_request', recovered: '0' })
    const bought = await buy('times-out')
    expect(bought.status).toBe('undelivered')
    const silent = await open(bought.purchaseId)
    expect(silent.body).toMatchObject({ status: 'impossible', route: 'none', recovered: '0' })
    expect(String(silent.body.hint)).toMatch(/declares no refunds/)
  }, 60_000)

  it('answers for a payment that the gateway makes void by itself', async () => {
    const bought = await buy('redirects-inward')
    expect(bought).toMatchObject({ code: 'seller_failed' })
    const { body } = await open(bought.purchaseId)
    await vi.waitFor(async () => {
      expect(await read(body.recourseId)).toMatchObject({
        status: 'recovered',
        route: 'cancel_authorization',
        recovered: '0.01',
      })
    }, SLOW)
  }, 60_000)

  it('needs the owner’s yes on what was delivered, then runs', async () => {
    const bought = await buy('weather')
    expect(bought.status).toBe('delivered')
    const asked = await open(bought.purchaseId, 'not_as_described')
    expect(asked).toMatchObject({ status: 403, body: { code: 'approval_required' } })
    expect((await ask(agent, 'GET', '/api/recourse')).body.recourse).not.toContainEqual(
      expect.objectContaining({ object: { kind: 'purchase', id: bought.purchaseId } }),
    )
    const { body } = await owner.send('POST', `/api/approvals/${String(asked.body.approvalId)}`, {
      decision: 'approve',
    })
    expect(body).toMatchObject({ status: 'approved', answer: { status: 'impossible', route: 'none' } })
    const again = await open(bought.purchaseId, 'not_as_described')
    expect(again.body).toMatchObject({ status: 'impossible' })
    // The owner needs no approval.
    const image = await buy('image')
    const own = await owner.send('POST', '/api/recourse', {
      object: { kind: 'purchase', id: image.purchaseId },
      reason: 'not_as_described',
    })
    expect(own).toMatchObject({ status: 200, body: { status: 'impossible' } })
  }, 60_000)

  it('is only for one’s own payments, by the scope that made them', async () => {
    const { purchaseId } = await buy('charges-again')
    expect(await open(purchaseId, 'not_delivered', other)).toMatchObject({
      status: 403,
      body: { code: 'insufficient_scope', scopes: ['purchases:pay'] },
    })
    const stranger = await newGuest(origin)
    const object = { kind: 'purchase', id: purchaseId }
    const foreign = await stranger.send('POST', '/api/recourse', { object, reason: 'duplicate' })
    expect(foreign).toMatchObject({ status: 404, body: { code: 'not_found' } })
    const swap = await owner.send('POST', '/api/recourse', {
      object: { kind: 'swap', id: 'swp_1' },
      reason: 'duplicate',
    })
    expect(swap.status).toBe(404)
  }, 60_000)

  it('disputes a card purchase, and takes back what the processor takes back', async () => {
    const { body: cards } = await owner.send('GET', '/api/cards')
    const [{ id: cardId }] = z
      .array(z.looseObject({ id: z.string() }))
      .min(1)
      .parse(cards.cards) as [{ id: string }]
    const purchase = async (clear: boolean) => {
      await owner.send('POST', '/sandbox/authorizations', { cardId, amount: '5', clear })
      const { body } = await owner.send('GET', `/api/cards/${cardId}/transactions`)
      const [latest] = z.array(z.looseObject({ id: z.string() })).parse(body.transactions)
      return { kind: 'card_transaction', id: latest?.id }
    }
    const openOwn = async (object: object) =>
      (await owner.send('POST', '/api/recourse', { object, reason: 'not_delivered' })).body
    const pending = await openOwn(await purchase(false))
    expect(pending).toMatchObject({ status: 'recovered', route: 'card_reversal', recovered: '5' })
    const disputed = await openOwn(await purchase(true))
    expect(disputed).toMatchObject({ status: 'open', route: 'card_dispute', recovered: '0' })
    const play = (outcome: string) =>
      owner.send('POST', '/sandbox/recourse', { recourseId: disputed.recourseId, outcome })
    expect((await play('won')).status).toBe(200)
    const readOwn = async () => (await owner.send('GET', `/api/recourse/${String(disputed.recourseId)}`)).body
    await vi.waitFor(
      async () => expect(await readOwn()).toMatchObject({ status: 'recovered', recovered: '5' }),
      SLOW,
    )
    expect((await play('lost')).status).toBe(200)
    expect(await readOwn()).toMatchObject({ status: 'recovered', recovered: '5' })
    const { body } = await owner.send('GET', `/api/cards/${cardId}/transactions`)
    expect(body.transactions).toContainEqual(
      expect.objectContaining({ cleared: '5', refunded: '0', status: 'settled' }),
    )
  }, 60_000)

  it('says that a transfer on the chain is final', async () => {
    const sent = await owner.send('POST', '/api/wallets/transfer', {
      token: 'USDC',
      amount: '1',
      destination: '0x000000000000000000000000000000000000dEaD',
      signature: 'sandbox',
    })
    expect(sent.status).toBe(200)
    const { body } = await owner.send('POST', '/api/recourse', {
      object: { kind: 'transfer', id: sent.body.transferId },
      reason: 'wrong_amount',
      note: 'One zero too many',
    })
    expect(body).toMatchObject({
      status: 'impossible',
      route: 'none',
      claimed: '1',
      note: 'One zero too many',
    })
  }, 60_000)
})
