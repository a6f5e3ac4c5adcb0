/** Purchases over REST: a real gateway, its chain, and sellers with stock servers. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createWalletClient, http, parseAbi } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { sandboxTokens } from '../../../src/chain/rpc/networks.ts'
import { type Agent, newAgent } from '../../journeys/agent.ts'
import { sharedGateway } from '../../journeys/gateway.ts'
import { newGuest, type Person, requestJson } from '../../journeys/people.ts'
import { hasAnvil } from '../selling/x402/world.ts'
import { PRICE, SELLER, type Sellers, startStockSellers } from './sellers.ts'

const hex = z.templateLiteral(['0x', z.string()])
const credentials = z.object({
  chain: z.object({ rpcUrl: z.string() }),
  payer: z.object({ privateKey: hex }),
})

const policy = {
  perTransaction: { max: '1' },
  dailyBudget: { max: '5' },
  categories: { allow: ['x402'] },
}

describe.skipIf(!hasAnvil())('buying', () => {
  const gateway = { origin: sharedGateway() }
  let sellers: Sellers
  let owner: Person
  let rpcUrl = ''
  let payer: z.output<typeof credentials>['payer']
  let depositsBefore = Promise.resolve(0)
  let agent: Agent

  beforeAll(async () => {
    const given = credentials.parse((await requestJson(gateway.origin, 'GET', '/sandbox/credentials')).body)
    rpcUrl = given.chain.rpcUrl
    payer = given.payer
    sellers = await startStockSellers(rpcUrl)
    owner = await newGuest(gateway.origin)
    depositsBefore = countDeposits(owner)
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
    const before = await sellers.chain.readBalance('USDC', SELLER)
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
    expect((await sellers.chain.readBalance('USDC', SELLER)) - before).toBe(PRICE)
  })

  it('pays a stock seller of the first generation', async () => {
    const { body } = await buy({ url: `${sellers.origin}/v1/report` }, 'v1')
    expect(body).toMatchObject({ status: 'delivered', charged: '0.001', protocol: 'x402-v1' })
  })

  it('pays an unmodified MPP server, whose challenge prescribes the nonce', async () => {
    const before = await sellers.chain.readBalance('USDC', SELLER)
    const { body } = await buy({ url: `${sellers.origin}/mpp/report` }, 'mpp')
    expect(body).toMatchObject({ status: 'delivered', charged: '0.001', protocol: 'mpp' })
    const repeats = await buy({ url: `${sellers.origin}/mpp/repeats` }, 'mpp-1')
    expect(repeats.body).toMatchObject({ status: 'delivered', protocol: 'mpp' })
    const again = await buy({ url: `${sellers.origin}/mpp/repeats` }, 'mpp-2')
    expect(again).toMatchObject({
      status: 502,
      body: { code: 'seller_failed', reason: 'challenge_repeated' },
    })
    expect((await sellers.chain.readBalance('USDC', SELLER)) - before).toBe(2n * PRICE)
  })

  it('settles once for concurrent calls with one idempotency key, and all of them find it', async () => {
    const [before, delivered] = [await sellers.chain.readBalance('USDC', SELLER), sellers.delivered()]
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => buy({ url: `${sellers.origin}/v2/report` }, 'together')),
    )
    expect(new Set(answers.map(({ body }) => body.transaction)).size).toBe(1)
    expect(answers.map(({ body }) => body.status)).toEqual(Array(8).fill('delivered'))
    expect((await sellers.chain.readBalance('USDC', SELLER)) - before).toBe(PRICE)
    expect(sellers.delivered() - delivered).toBe(1)
  })

  it('quotes a price without paying, and knows what was paid before', async () => {
    const { status, body } = await owner.send('POST', '/api/purchases/quote', {
      url: `${sellers.origin}/v2/report`,
    })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      origin: sellers.origin,
      protocols: ['x402-v2'],
      offers: [
        { protocol: 'x402-v2', asset: 'USDC', amount: '0.001', usd: '0.001', payTo: SELLER, payable: true },
      ],
      description: 'A report',
      known: { payTo: SELLER, price: '0.001', purchases: 2 },
      free: false,
    })
    const free = await owner.send('POST', '/api/purchases/quote', { url: `${sellers.origin}/free` })
    expect(free.body).toMatchObject({ free: true, offers: [], known: null })
  })

  it('keeps a chunk in the purse of the key, and shows it', async () => {
    const { body } = await owner.send('GET', '/api/wallets')
    // One USDC was moved, five reports were paid.
    expect(body.purse).toEqual([
      { agentId: expect.stringMatching(/^key_/), asset: 'USDC', amount: '0.995', usd: '0.995' },
    ])
    const listed = await owner.send('GET', '/api/purchases?limit=2')
    expect(listed.body.purchases).toHaveLength(2)
    const activity = await owner.send('GET', '/api/activity?kind=purchase')
    expect(activity.body.entries).toHaveLength(5)
    expect((await owner.send('GET', '/api/activity?kind=transfer')).body.entries).toEqual([])
    // Filling the purse is no spending.
    expect((await owner.send('GET', '/api/wallets/transfers')).body.transfers).toEqual([])
  })

  it('refuses what it cannot or may not buy, and pays nothing', async () => {
    const before = await sellers.chain.readBalance('USDC', SELLER)
    const url = `${sellers.origin}/v2/report`
    const codes = async (input: object) => {
      const { status, body } = await buy({ url, ...input })
      return [status, body.code]
    }
    expect(await codes({ maxAmount: '0.0009' })).toEqual([422, 'terms_not_payable'])
    expect(await codes({ asset: 'EURC' })).toEqual([422, 'terms_not_payable'])
    expect(await codes({ url: 'http://169.254.169.254/latest' })).toEqual([400, 'url_not_allowed'])
    expect(await codes({ url: 'https://10.0.0.1/' })).toEqual([400, 'url_not_allowed'])
    expect(await codes({ url: `${sellers.origin}/broken` })).toEqual([502, 'seller_failed'])
    expect(await codes({ url: `${sellers.origin}/moved` })).toEqual([502, 'seller_failed'])
    expect(await codes({ headers: { Authorization: 'Bearer x' } })).toEqual([400, 'invalid_request'])
    expect(await codes({ headers: { 'X-Payment': 'x' } })).toEqual([400, 'invalid_request'])
    expect(await codes({ body: 'x' })).toEqual([400, 'invalid_request'])
    expect(await sellers.chain.readBalance('USDC', SELLER)).toBe(before)
  })

  it('signs the evidence, which anybody can verify offline and on the chain', async () => {
    const { body: bought } = await buy({ url: `${sellers.origin}/v2/report`, purpose: 'weather' }, 'evidence')
    const { body } = await owner.send('GET', `/api/purchases/${bought.purchaseId}/evidence`)
    expect(body.evidence).toMatchObject({
      status: 'delivered',
      intent: { url: `${sellers.origin}/v2/report`, purpose: 'weather' },
      decision: { decisionId: bought.decisionId, policyVersion: 1 },
      challenge: { units: '1000', payTo: SELLER.toLowerCase() },
      settlement: { transaction: bought.transaction, log: { units: '1000' } },
    })
    const folder = mkdtempSync(join(tmpdir(), 'bursar-evidence-'))
    const verify = (evidence: object) => {
      const file = join(folder, 'evidence.json')
      writeFileSync(file, JSON.stringify(evidence))
      const rpc = sellers.chain.rpcUrl ?? rpcUrl
      return spawnSync(
        process.execPath,
        ['.build/bin/main.js', 'audit', 'verify-purchase', file, '--rpc', rpc],
        {
          encoding: 'utf8',
        },
      )
    }
    const good = verify(body)
    expect(good.stdout).toContain('delivered, paid 0.001 USDC')
    expect(good.stdout).toContain('payment found on the chain')
    expect(good.status).toBe(0)
    const evidence = z.looseObject({ challenge: z.looseObject({}) }).parse(body.evidence)
    const forged = verify({
      ...body,
      evidence: { ...evidence, challenge: { ...evidence.challenge, units: '1' } },
    })
    expect(forged.status).toBe(1)
    expect(forged.stdout).toContain('the signature is not')
  })

  it('buys for a person from the account’s own purse, which holds nothing between purchases', async () => {
    const { status, body } = await owner.send('POST', '/api/purchases', {
      url: `${sellers.origin}/v2/report`,
      maxAmount: '0.01',
    })
    expect([status, body.status]).toEqual([200, 'delivered'])
    const { body: wallet } = await owner.send('GET', '/api/wallets')
    expect(wallet.purse).toContainEqual({ agentId: null, asset: 'USDC', amount: '0', usd: '0' })
    // A seller pays back to the address that paid: it is a deposit, and returns to the wallet.
    const { body: shown } = await owner.send('GET', `/api/purchases/${String(body.purchaseId)}/evidence`)
    const { payer: purse } = z
      .looseObject({ authorization: z.looseObject({ payer: hex }) })
      .parse(shown.evidence).authorization
    const account = privateKeyToAccount(payer.privateKey)
    const client = createWalletClient({ account, chain: baseSepolia, transport: http(rpcUrl) })
    await client.writeContract({
      address: sandboxTokens.USDC.address,
      abi: parseAbi(['function transfer(address to, uint256 value) returns (bool)']),
      functionName: 'transfer',
      args: [purse, 250_000n],
    })
    await vi.waitFor(
      async () =>
        expect(findUsdc((await owner.send('GET', '/api/wallets')).body) - findUsdc(wallet)).toBeCloseTo(
          0.25,
          6,
        ),
      { timeout: 30_000, interval: 250 },
    )
    expect(await countDeposits(owner)).toBe((await depositsBefore) + 1)
  })

  it('buys the FX quote of the gateway itself', async () => {
    const { body } = await buy({
      url: `${gateway.origin}/api/x402/fx?from=USD&to=EUR&amount=100`,
      maxAmount: '0.02',
    })
    expect(body).toMatchObject({ status: 'delivered', charged: '0.01', response: { status: 200 } })
    expect(JSON.parse(String(z.looseObject({ body: z.string() }).parse(body.response).body))).toMatchObject({
      from: 'USD',
      to: 'EUR',
    })
  })

  it('returns the money of a revoked key to the wallet', async () => {
    const { body: before } = await owner.send('GET', '/api/wallets')
    const id = z
      .array(z.looseObject({ agentId: z.string().nullable() }))
      .parse(before.purse)
      .find(({ agentId }) => agentId !== null)?.agentId
    expect((await owner.send('PATCH', `/api/agents/keys/${id}`, { purse: { chunk: '0' } })).status).toBe(200)
    expect((await owner.send('DELETE', `/api/agents/keys/${id}`)).status).toBe(200)
    await vi.waitFor(
      async () => {
        const { body } = await owner.send('GET', '/api/wallets')
        expect(body.purse).toContainEqual({ agentId: id, asset: 'USDC', amount: '0', usd: '0' })
        expect(findUsdc(body) - findUsdc(before)).toBeCloseTo(0.984, 6)
      },
      { timeout: 20_000, interval: 250 },
    )
    expect(await countDeposits(owner)).toBe((await depositsBefore) + 1)
  })
})

async function countDeposits({ send }: Person): Promise<number> {
  const { body } = await send('GET', '/api/activity?kind=deposit')
  return z.array(z.unknown()).parse(body.entries).length
}

function findUsdc(wallet: unknown): number {
  const { balances } = z
    .looseObject({ balances: z.array(z.looseObject({ token: z.string(), amount: z.string() })) })
    .parse(wallet)
  return Number(balances.find(({ token }) => token === 'USDC')?.amount)
}
