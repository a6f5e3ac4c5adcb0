/**
 * Cards over real HTTP, on the built gateway with its chain: purchases by webhook, freezing, limits, clearing,
 * settlement.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { signWebhook } from '../../src/providers/standard-webhooks.ts'
import { newAgent } from './agent.ts'
import { askForApproval } from './card-request.ts'
import { sharedGateway } from './gateway.ts'
import { newGuest, type Person, requestJson } from './people.ts'

const cards = z.object({ cards: z.array(z.looseObject({ id: z.string() })) })
const wallet = z.object({
  balances: z.array(
    z.object({ token: z.string(), amount: z.string(), held: z.string(), usd: z.string().nullable() }),
  ),
})

const origin = sharedGateway()
let secret = ''
beforeAll(async () => {
  const { body } = await requestJson(origin, 'GET', '/sandbox/credentials')
  secret = z.object({ lithicWebhookSecret: z.string() }).parse(body).lithicWebhookSecret
})

async function readCard(person: Person): Promise<string> {
  const { body } = await person.send('GET', '/api/cards')
  return cards.parse(body).cards[0]?.id ?? ''
}

async function readUsdc(person: Person): Promise<string> {
  const { body } = await person.send('GET', '/api/wallets')
  const row = wallet.parse(body).balances.find(({ token }) => token === 'USDC')
  return `${row?.amount} + ${row?.held}`
}

const buy = (cardId: string, amount: string, more: Record<string, unknown> = {}) =>
  requestJson(origin, 'POST', '/sandbox/authorizations', { body: { cardId, amount, ...more } })

/** Sends a signed webhook in the processor's format. */
async function hook(
  message: Record<string, unknown>,
  { id = randomUUID(), at = new Date(), signedBody }: { id?: string; at?: Date; signedBody?: string } = {},
) {
  const body = JSON.stringify(message)
  const response = await fetch(`${origin}/api/webhooks/lithic`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...signWebhook({ id, body: signedBody ?? body, at }, secret),
    },
    body,
  })
  return { status: response.status, body: z.record(z.string(), z.unknown()).parse(await response.json()) }
}

const buildRequest = (card: string, cents: number, more: Record<string, unknown> = {}) => {
  const terminal = { partial_approval_capable: false, type: 'UNKNOWN' }
  return askForApproval(card, cents, { pos: { entry_mode: { pan: 'ECOMMERCE' }, terminal }, ...more })
}

describe('a card', () => {
  it('is issued to every new guest, pays, and is settled on the chain', async () => {
    const guest = await newGuest(origin)
    const cardId = await readCard(guest)
    const { body: banking } = await guest.send('GET', '/api/banking')
    const [account] = z.array(z.looseObject({ id: z.string() })).parse(banking.accounts)
    await requestJson(origin, 'POST', '/sandbox/deposits', {
      body: { accountId: account?.id, amount: '250.25' },
    })
    const { body } = await buy(cardId, '12.50')
    expect(body).toMatchObject({ result: 'APPROVED', approved: '12.5', cleared: true })
    await expect.poll(() => readUsdc(guest), { timeout: 10_000 }).toBe('1237.75 + 0')
    // Longer than the tolerated duration of a difference between ledger and chain.
    await sleep(8_000)
    expect(await readUsdc(guest)).toBe('1237.75 + 0')
    const { body: history } = await guest.send('GET', `/api/cards/${cardId}/transactions`)
    expect(history).toMatchObject({
      transactions: [{ status: 'settled', reason: 'approved', cleared: '12.5', held: [] }],
    })
  }, 30_000)

  it('declines the next purchase once it is frozen, and approves again once unfrozen', async () => {
    const guest = await newGuest(origin)
    const cardId = await readCard(guest)
    const results = [(await buy(cardId, '1')).body.result]
    const { body } = await guest.send('POST', '/api/cards/settings', { cardId, freeze: true })
    expect(body).toMatchObject({ success: true, card: { id: cardId, status: 'frozen' } })
    results.push((await buy(cardId, '1')).body.result)
    await guest.send('POST', '/api/cards/settings', { cardId, freeze: false })
    results.push((await buy(cardId, '1')).body.result)
    await guest.send('PATCH', '/api/cards', { cardId, status: 'canceled' })
    results.push((await buy(cardId, '1')).body.result)
    expect(results).toEqual(['APPROVED', 'CARD_PAUSED', 'APPROVED', 'CARD_PAUSED'])
    expect((await guest.send('POST', '/api/cards/settings', { cardId, freeze: false })).status).toBe(409)
  })

  it('enforces limits, channels, merchants and the order of funding sources', async () => {
    const guest = await newGuest(origin)
    const { balances: before } = wallet.parse((await guest.send('GET', '/api/wallets')).body)
    const euroRate = Number(before.find(({ token }) => token === 'EURC')?.usd) / 500
    const cardId = await readCard(guest)
    const { body } = await guest.send('POST', '/api/cards/settings', {
      cardId,
      limits: { daily: 100, perPurchase: '60' },
      channels: { atm: false },
      priority: ['EURC', 'USDT'],
    })
    expect(body).toMatchObject({
      card: { limits: { daily: '100', perPurchase: '60' }, priority: ['EURC', 'USDT'] },
    })
    await guest.send('PATCH', '/api/cards', { cardId, nickname: 'Travel', mcc: { deny: ['7995'] } })
    const results = []
    for (const [amount, more] of [
      ['60.01', {}],
      ['50', { channel: 'atm' }],
      ['50', { mcc: '7995' }],
      ['60', { clear: false }],
      ['40.01', {}],
      ['40', { clear: false }],
    ] as const)
      results.push((await buy(cardId, amount, more)).body.result)
    expect(results).toEqual([
      'VELOCITY_EXCEEDED',
      'UNAUTHORIZED_MERCHANT',
      'UNAUTHORIZED_MERCHANT',
      'APPROVED',
      'VELOCITY_EXCEEDED',
      'APPROVED',
    ])
    const { balances } = wallet.parse((await guest.send('GET', '/api/wallets')).body)
    expect(balances.filter(({ held }) => held !== '0').map(({ token }) => token)).toEqual(['EURC'])
    // 100 USD at the rate of the day, less the spread of half a percent.
    expect((await guest.send('GET', '/api/cards')).body.conversionSpreadBps).toBe(50)
    const euros = balances.find(({ token }) => token === 'EURC')
    expect(Number(euros?.held) * euroRate * 0.995).toBeCloseTo(100, 1)
  })

  it('does not count as a transfer in the AML rules, although its money leaves the wallet', async () => {
    const guest = await newGuest(origin)
    const { body } = await guest.send('GET', '/api/banking')
    const [account] = z.array(z.looseObject({ id: z.string() })).parse(body.accounts)
    await requestJson(origin, 'POST', '/sandbox/deposits', {
      body: { accountId: account?.id, amount: '4000' },
    })
    const cardId = await readCard(guest)
    for (let times = 0; times < 4; times += 1) expect((await buy(cardId, '900')).body.result).toBe('APPROVED')
    await expect.poll(() => readUsdc(guest), { timeout: 10_000 }).toBe('1400 + 0')
    const transfer = {
      destination: '0x000000000000000000000000000000000000dEaD',
      amount: '900',
      signature: 'sandbox',
    }
    expect((await guest.send('POST', '/api/wallets/transfer', transfer)).body).toMatchObject({
      status: 'confirmed',
    })
  }, 30_000)

  it('splits a purchase over several assets', async () => {
    const guest = await newGuest(origin)
    const cardId = await readCard(guest)
    await guest.send('POST', '/api/cards/settings', { cardId, priority: ['USDT', 'PYUSD', 'USDC'] })
    expect((await buy(cardId, '600', { clear: false })).body.result).toBe('APPROVED')
    const { body: read } = await guest.send('GET', '/api/wallets')
    const held = wallet.parse(read).balances.map(({ token, held }) => `${token} ${held}`)
    expect(held).toEqual(['USDC 100', 'USDT 250', 'EURC 0', 'PYUSD 250'])
    expect((await buy(cardId, '900.01')).body.result).toBe('INSUFFICIENT_FUNDS')
    expect((await buy(cardId, '900')).body.result).toBe('APPROVED')
  })

  it('a card of an agent is bounded by the agent’s daily budget, and the agent cannot loosen it', async () => {
    const guest = await newGuest(origin)
    const own = await readCard(guest)
    const agent = await newAgent()
    const { body: made } = await guest.send('POST', '/api/agents/keys', {
      name: 'Shopper',
      publicKey: agent.jwk,
      scopes: ['cards:read', 'cards:write'],
      policy: { perTransaction: { max: '20' }, dailyBudget: { max: '30' }, categories: { allow: ['card'] } },
    })
    const call = async (method: string, path: string, sent?: unknown) => {
      const response = await agent.fetch({
        method,
        url: `${origin}${path}`,
        ...(sent === undefined ? {} : { body: JSON.stringify(sent) }),
      })
      return { status: response.status, body: z.looseObject({}).parse(await response.json()) }
    }
    const { body: card } = await call('POST', '/api/cards', { nickname: 'Agent' })
    expect(card).toMatchObject({ agentId: made.agentId })
    const cardId = String(card.id)
    const results = []
    for (const amount of ['20.01', '20', '10.01', '10', '0.01'])
      results.push((await buy(cardId, amount)).body.result)
    expect(results).toEqual([
      'VELOCITY_EXCEEDED',
      'APPROVED',
      'VELOCITY_EXCEEDED',
      'APPROVED',
      'VELOCITY_EXCEEDED',
    ])
    expect(await call('PATCH', '/api/cards', { cardId, agentId: null })).toMatchObject({ status: 403 })
    expect(await call('PATCH', '/api/cards', { cardId: own, nickname: 'Mine' })).toMatchObject({
      status: 404,
    })
    expect(await call('POST', '/api/cards', { agentId: null })).toMatchObject({ status: 403 })
    const settings = (sent: Record<string, unknown>) =>
      call('POST', '/api/cards/settings', { cardId, ...sent })
    expect((await settings({ freeze: true, limits: { daily: 5 } })).status).toBe(200)
    for (const looser of [{ freeze: false }, { limits: { daily: 6 } }, { limits: { daily: null } }])
      expect(await settings(looser)).toMatchObject({ status: 403, body: { code: 'insufficient_scope' } })
    expect((await guest.send('POST', '/api/cards/settings', { cardId, freeze: false })).status).toBe(200)
    const outsider = await newGuest(origin)
    expect((await outsider.send('PATCH', '/api/cards', { cardId, nickname: 'Mine' })).status).toBe(404)
    expect((await outsider.send('GET', `/api/cards/${cardId}/transactions`)).status).toBe(404)
    expect(
      (
        await outsider.send('PATCH', '/api/cards', {
          cardId: await readCard(outsider),
          agentId: made.agentId,
        })
      ).status,
    ).toBe(404)
  })
})

describe('the card processor’s webhook', () => {
  it('answers repeats identically, and approves a part for terminals that accept one', async () => {
    const guest = await newGuest(origin)
    const cardId = await readCard(guest)
    const request = buildRequest(cardId, 1000)
    const [first, second] = await Promise.all([hook(request), hook(request)])
    expect(first).toEqual({ status: 200, body: { result: 'APPROVED', token: request.token } })
    expect(second).toEqual(first)
    expect(await readUsdc(guest)).toBe('990 + 10')
    await guest.send('POST', '/api/cards/settings', { cardId, priority: ['USDT'] })
    const terminal = { partial_approval_capable: true, type: 'UNKNOWN' }
    const partial = buildRequest(cardId, 30_000, { pos: { entry_mode: { pan: 'CONTACTLESS' }, terminal } })
    expect((await hook(partial)).body).toEqual({
      result: 'APPROVED',
      token: partial.token,
      approved_amount: 25_000,
    })
    const inquiry = buildRequest(cardId, 0, { status: 'BALANCE_INQUIRY' })
    expect((await hook(inquiry)).body).toEqual({
      result: 'APPROVED',
      token: inquiry.token,
      balance: { amount: 0, available: 0 },
    })
  })

  it('keeps an out-of-order event until its authorization arrives', async () => {
    const guest = await newGuest(origin)
    const cardId = await readCard(guest)
    const request = buildRequest(cardId, 1000)
    const events = [
      { token: randomUUID(), type: 'AUTHORIZATION', amount: 1000, result: 'APPROVED' },
      { token: randomUUID(), type: 'AUTHORIZATION_REVERSAL', amount: -1000, result: 'APPROVED' },
    ]
    const { token } = request
    await hook({
      event_type: 'card_transaction.updated',
      token,
      card_token: cardId,
      status: 'VOIDED',
      events,
    })
    expect((await hook(request)).body.result).toBe('APPROVED')
    await expect.poll(() => readUsdc(guest), { timeout: 10_000 }).toBe('1000 + 0')
  })

  it('rejects webhooks that are unsigned, signed for another body, or old, without any change', async () => {
    const guest = await newGuest(origin)
    const cardId = await readCard(guest)
    const request = buildRequest(cardId, 1000)
    const refused = [
      await hook(request, { signedBody: JSON.stringify({ ...request, amount: 1 }) }),
      await hook(request, { at: new Date(Date.now() - 301_000) }),
      await hook(request, { at: new Date(Date.now() + 330_000) }),
      await requestJson(origin, 'POST', '/api/webhooks/lithic', { body: request }),
    ]
    expect(refused.map(({ status, body }) => `${status} ${body.code}`)).toEqual(
      Array(4).fill('401 signature_invalid'),
    )
    expect(await readUsdc(guest)).toBe('1000 + 0')
  })

  it('declines an unknown card, rejects unreadable requests, and only stores unknown events', async () => {
    expect((await hook(buildRequest('card_nobody', 100))).body.result).toBe('CARD_PAUSED')
    expect((await hook({ event_type: 'card.created', token: 'x' })).body).toMatchObject({ received: true })
    expect((await hook(buildRequest('card_nobody', 1.5))).body).toMatchObject({
      status: 400,
      code: 'invalid_request',
    })
    expect((await hook(buildRequest('card_nobody', -1))).body).toMatchObject({ status: 400 })
    expect((await hook(buildRequest('card_nobody', 1, { cardholder_currency: 'EUR' }))).body).toMatchObject({
      status: 400,
    })
    expect((await hook({ ...buildRequest('x', 1), padding: 'x'.repeat(70_000) })).status).toBe(413)
  })
})
