/** Purchases over REST: a real gateway, its chain, and sellers with stock servers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Agent, newAgent } from '../journeys/agent.ts'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { newGuest, type Person, requestJson } from '../journeys/people.ts'
import { hasAnvil } from '../x402/world.ts'
import { PRICE, SELLER, type Sellers, startStockSellers } from './sellers.ts'

const credentials = z.object({ chain: z.object({ rpcUrl: z.string() }) })

const policy = {
  perTransaction: { max: '1' },
  dailyBudget: { max: '5' },
  categories: { allow: ['x402'] },
}

describe.skipIf(!hasAnvil())('buying', () => {
  let gateway: Gateway
  let sellers: Sellers
  let owner: Person
  let agent: Agent

  beforeAll(async () => {
    gateway = await startGateway({ RATE_MUTATIONS: '100000/60' })
    const { chain } = credentials.parse(
      (await requestJson(gateway.origin, 'GET', '/sandbox/credentials')).body,
    )
    sellers = await startStockSellers(chain.rpcUrl)
    owner = await newGuest(gateway.origin)
    agent = await newAgent()
    const { status } = await owner.send('POST', '/api/agents/keys', {
      name: 'Buyer',
      publicKey: agent.jwk,
      scopes: ['purchases:pay', 'wallets:read'],
      policy,
    })
    expect(status).toBe(200)
  }, 120_000)
  afterAll(async () => {
    await sellers?.close()
    await gateway?.stop()
  }, 60_000)

  const buy = async (input: object, idempotencyKey?: string) => {
    const response = await agent.fetch({
      method: 'POST',
      url: `${gateway.origin}/api/purchases`,
      body: JSON.stringify({ maxAmount: '0.01', ...input }),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }

  it('pays a stock seller once and returns what it delivers', async () => {
    const before = await sellers.chain.balanceOf('USDC', SELLER)
    const { status, body } = await buy({ url: `${sellers.origin}/v2/report` }, 'first')
    expect(body).toMatchObject({
      status: 'delivered',
      charged: '0.001',
      asset: 'USDC',
      protocol: 'x402-v2',
      payTo: SELLER,
      response: { status: 200, body: '{"report":"sunny"}', truncated: false },
      replayed: false,
    })
    expect(status).toBe(200)
    const again = await buy({ url: `${sellers.origin}/v2/report` }, 'first')
    expect(again.body).toEqual({ ...body, replayed: true })
    expect((await sellers.chain.balanceOf('USDC', SELLER)) - before).toBe(PRICE)
  })
})
