/** Purchases under attack: buyers that smuggle, sellers that overload, owners that stop a key in the middle. */
import { createPublicClient, erc20Abi, http } from 'viem'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { newAgent } from '../../journeys/agent.ts'
import { type Gateway, startGateway } from '../../journeys/gateway.ts'
import { newGuest, type Person, requestJson } from '../../journeys/people.ts'
import { hasAnvil } from '../selling/x402/world.ts'
import { type FlakySellers, GO_ON, SELLER, SOLD, startFlakySellers } from './flaky-sellers.ts'

const USDC = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const credentials = z.object({ chain: z.object({ rpcUrl: z.string() }) })
const policy = {
  perTransaction: { max: '1' },
  dailyBudget: { max: '5' },
  categories: { allow: ['x402'] },
}

describe.skipIf(!hasAnvil())('purchases under attack', () => {
  let gateway: Gateway
  let sellers: FlakySellers
  let rpcUrl = ''

  beforeAll(async () => {
    gateway = await startGateway({ RATE_MUTATIONS: '100000/60', LOG_LEVEL: 'debug' })
    rpcUrl = credentials.parse((await requestJson(gateway.origin, 'GET', '/sandbox/credentials')).body).chain
      .rpcUrl
    sellers = await startFlakySellers(rpcUrl)
  }, 120_000)
  afterAll(async () => {
    await sellers?.close()
    await gateway?.stop()
  }, 60_000)

  const newBuyer = async () => {
    const owner: Person = await newGuest(gateway.origin)
    const agent = await newAgent()
    const { body } = await owner.send('POST', '/api/agents/keys', {
      name: 'Buyer',
      publicKey: agent.jwk,
      scopes: ['purchases:pay'],
      policy,
    })
    const id = z.string().parse(body.agentId)
    const buy = async (input: object, idempotencyKey: string = crypto.randomUUID()) => {
      const response = await agent.fetch({
        method: 'POST',
        url: `${gateway.origin}/api/purchases`,
        body: JSON.stringify({ maxAmount: '0.01', ...input }),
        idempotencyKey,
      })
      return { status: response.status, body: z.record(z.string(), z.unknown()).parse(await response.json()) }
    }
    return { owner, id, buy }
  }
  const readSold = () =>
    createPublicClient({ chain: baseSepolia, transport: http(rpcUrl) }).readContract({
      address: USDC,
      abi: erc20Abi,
      functionName: 'balanceOf',
      args: [SELLER],
    })
  const url = (run: string, kind = 'honest') => `${sellers.origin}/${kind}/${run}`

  it('attacks by header fields and bodies send nothing', async () => {
    const { buy } = await newBuyer()
    const before = await readSold()
    for (const headers of [
      { 'X-PAYMENT': 'e30=' },
      { 'x-PaYmEnT': 'e30=' },
      { 'X-Payment-Response': 'e30=' },
      { 'PAYMENT-SIGNATURE': 'e30=' },
      { 'Payment-Authorization': 'Payment x' },
      { 'X-Note': 'a\r\nPAYMENT-SIGNATURE: e30=' },
      { 'X-Note': 'a\u0000b' },
      { 'X-Note\r\nPAYMENT-SIGNATURE': 'e30=' },
      { 'X-Note': 'a', 'x-note': 'b' },
      { Host: 'other.example.com' },
      { 'Content-Length': '1' },
      { 'Transfer-Encoding': 'chunked' },
      { 'X-Forwarded-For': '127.0.0.1' },
      { 'X-Long': 'x'.repeat(16_385) },
    ])
      expect([headers, (await buy({ url: url('smuggled'), headers })).status]).toEqual([headers, 400])
    const large = await buy({ url: url('large'), method: 'POST', body: 'x'.repeat(4 * 1024 * 1024 + 1) })
    expect([400, 413]).toContain(large.status)
    const multibyte = await buy({ url: url('large'), method: 'POST', body: 'ä'.repeat(2 * 1024 * 1024 + 1) })
    expect([400, 413]).toContain(multibyte.status)
    expect(await readSold()).toBe(before)
  })

  it('other URLs under the same idempotency key are refused', async () => {
    const { buy } = await newBuyer()
    expect((await buy({ url: url('mine') }, 'one')).body).toMatchObject({ status: 'delivered' })
    const before = await readSold()
    for (const input of [
      { url: url('theirs') },
      { url: url('mine'), maxAmount: '0.02' },
      { url: url('mine'), headers: { 'X-Other': 'a' } },
    ])
      expect(await buy(input, 'one')).toMatchObject({ status: 422, body: { code: 'idempotency_key_reused' } })
    expect(await readSold()).toBe(before)
  })

  it('one idempotency key of two buyers makes two purchases', async () => {
    const [one, other] = [await newBuyer(), await newBuyer()]
    const [first, second] = await Promise.all([
      one.buy({ url: url('shared') }, 'shared'),
      other.buy({ url: url('shared') }, 'shared'),
    ])
    expect(first.body.status).toBe('delivered')
    expect(second.body.status).toBe('delivered')
    expect(first.body.transaction).not.toBe(second.body.transaction)
  })

  it('purchases of a key that is stopped while the seller is asked pay nothing', async () => {
    const before = await readSold()
    const stops: Readonly<Record<string, (owner: Person, id: string) => Promise<unknown>>> = {
      pause: (owner, id) => owner.send('POST', `/api/agents/keys/${id}/pause`),
      revoke: (owner, id) => owner.send('DELETE', `/api/agents/keys/${id}`),
      narrow: (owner, id) =>
        owner.send('PATCH', `/api/agents/keys/${id}`, {
          policy: { ...policy, categories: { allow: ['transfer'] } },
        }),
      lock: (owner) => owner.send('POST', '/api/security/lock', {}),
      deny: (owner, id) =>
        owner.send('PATCH', `/api/agents/keys/${id}`, {
          policy: { ...policy, sellers: { deny: [sellers.origin] } },
        }),
    }
    for (const [name, stop] of Object.entries(stops)) {
      const { owner, id, buy } = await newBuyer()
      sellers.interrupt(name, 'asked', async () => {
        expect(await stop(owner, id)).toMatchObject({ status: 200 })
        return GO_ON
      })
      const { status, body } = await buy({ url: url(name) })
      expect([name, status >= 400, body.charged]).toEqual([name, true, undefined])
      if (name !== 'lock') expect((await owner.send('GET', '/api/purchases')).body.purchases).toEqual([])
    }
    expect(await readSold()).toBe(before)
  })

  it('purchases of an account that is locked while it pays are paid once, and no more', async () => {
    const { owner, buy } = await newBuyer()
    const before = await readSold()
    sellers.interrupt('locked', 'paid', async () => {
      expect(await owner.send('POST', '/api/security/lock', {})).toMatchObject({ status: 200 })
      // Without an answer, it is presented again.
      return 'hang up'
    })
    expect((await buy({ url: url('locked') }, 'locked')).body).toMatchObject({
      status: 'delivered',
      charged: '0.001',
    })
    expect((await readSold()) - before).toBe(1_000n)
    for (const key of ['locked', 'another'])
      expect((await buy({ url: url('locked') }, key)).body).toMatchObject({ status: 423 })
    expect((await readSold()) - before).toBe(1_000n)
  })

  it('purchases of a key that is revoked while it pays are booked as the chain has them, and its purse is emptied', async () => {
    const { owner, id, buy } = await newBuyer()
    const before = await readSold()
    sellers.interrupt('revoked', 'paid', async () => {
      await owner.send('DELETE', `/api/agents/keys/${id}`)
      return GO_ON
    })
    expect((await buy({ url: url('revoked') })).body).toMatchObject({ status: 'delivered', charged: '0.001' })
    expect((await readSold()) - before).toBe(1_000n)
    await expect
      .poll(async () => (await owner.send('GET', '/api/wallets')).body.purse, {
        timeout: 30_000,
        interval: 250,
      })
      .toMatchObject([{ agentId: id, asset: 'USDC', amount: '0' }])
  }, 60_000)

  it('purchases from a seller with huge header fields are paid at most once', async () => {
    const { buy, owner } = await newBuyer()
    const before = await readSold()
    const { body } = await buy({ url: url('huge', 'huge') }, 'huge')
    const known = { status: 'undelivered', lastFailure: expect.stringContaining('answer') }
    expect(body).toMatchObject({ ...known, charged: '0.001', attempts: 3, askedAgain: false })
    const expiresAt = z.iso.datetime().parse(body.expiresAt)
    expect(Date.parse(expiresAt)).toBeGreaterThan(Date.now() + 23 * 60 * 60_000)
    const repeated = await buy({ url: url('huge', 'huge') }, 'huge')
    expect(repeated.body).toMatchObject({ ...known, attempts: 6, askedAgain: true, expiresAt })
    expect((await readSold()) - before).toBe(1_000n)
    expect((await owner.send('GET', `/api/purchases/${body.purchaseId}`)).body).toMatchObject({
      ...known,
      attempts: 6,
      expiresAt,
    })
    expect((await owner.send('GET', '/api/activity?kind=purchase')).body.entries).toMatchObject([
      { status: 'undelivered', amount: '0.001', requested: null },
    ])
  })

  it('leave neither what was sold nor what pays in the log', async () => {
    const { buy } = await newBuyer()
    const { body } = await buy({ url: url('logged'), headers: { 'X-Note': 'private-note' } })
    expect(JSON.stringify(body)).toContain(SOLD)
    const log = gateway.output()
    for (const secret of [SOLD, 'private-note', 'PAYMENT-SIGNATURE', 'x402Version'])
      expect(log.split('\n').filter((line) => line.includes(secret))).toEqual([])
  })
})
