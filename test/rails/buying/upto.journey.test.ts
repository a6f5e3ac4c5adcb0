/** Purchases by the scheme `upto`: what was used is charged, at most the maximum, whatever the seller says. */
import { execFile } from 'node:child_process'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createPublicClient, erc20Abi, http } from 'viem'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../../src/chain/node/anvil-process.ts'
import { type Gateway, startGateway } from '../../journeys/gateway.ts'
import { newGuest, type Person } from '../../journeys/people.ts'
import { hasAnvil } from '../selling/x402/world.ts'
import { MAXIMUM, startUptoSellers, UPTO_SELLER, type UptoSellers } from './upto-sellers.ts'

const run = promisify(execFile)
const USDC = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'

const wallet = z.looseObject({
  safeAddress: z.templateLiteral(['0x', z.string()]),
  balances: z.array(z.looseObject({ token: z.string(), amount: z.string(), held: z.string() })),
  purse: z.array(z.looseObject({ agentId: z.string().nullable(), amount: z.string() })),
})

describe.skipIf(!hasAnvil())('purchases of what is used', () => {
  let node: AnvilProcess
  let gateway: Gateway
  let sellers: UptoSellers
  let owner: Person
  let bearer = ''
  let keyId = ''

  beforeAll(async () => {
    node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000)
    gateway = await startGateway({ CHAIN_RPC_URL: node.url })
    sellers = await startUptoSellers(node.url)
    owner = await newGuest(gateway.origin)
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Buyer',
      scopes: ['purchases:pay', 'wallets:read'],
      policy: {
        perTransaction: { max: '0.05' },
        dailyBudget: { max: '0.05' },
        categories: { allow: ['x402'] },
      },
    })
    expect(body.key).toBeTypeOf('string')
    bearer = `Bearer ${String(body.key)}`
    keyId = String(body.keyId ?? body.id)
  }, 120_000)
  afterAll(async () => {
    await sellers?.close()
    await gateway?.stop()
    await node?.stop()
  }, 60_000)

  const rpc = (method: string, params: unknown[] = []) =>
    fetch(node.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    }).then((response) => response.json())
  const readBalance = (address: `0x${string}`) =>
    createPublicClient({ chain: baseSepolia, transport: http(node.url) }).readContract({
      address: USDC,
      abi: erc20Abi,
      functionName: 'balanceOf',
      args: [address],
    })
  const buy = async (path: string, idempotencyKey: string = crypto.randomUUID(), more: object = {}) => {
    const response = await fetch(`${gateway.origin}/api/purchases`, {
      method: 'POST',
      headers: {
        authorization: bearer,
        'content-type': 'application/json',
        'idempotency-key': idempotencyKey,
      },
      body: JSON.stringify({ url: `${sellers.origin}${path}`, maxAmount: '0.01', ...more }),
    })
    return z
      .looseObject({ status: z.unknown(), purchaseId: z.string().nullish() })
      .parse(await response.json())
  }
  const readJson = async (path: string): Promise<unknown> => (await fetch(`${gateway.origin}${path}`)).json()
  const read = async (id: unknown) => (await owner.send('GET', `/api/purchases/${id}`)).body
  const money = async () => wallet.parse((await owner.send('GET', '/api/wallets')).body)
  /** Booked money of the account's wallet and purses, in smallest units. */
  const booked = async () => {
    const { balances, purse } = await money()
    const units = (text: string) => BigInt(Math.round(Number(text) * 1e6))
    const own = balances.filter(({ token }) => token === 'USDC')
    return [...own.flatMap(({ amount, held }) => [amount, held]), ...purse.map(({ amount }) => amount)]
      .map(units)
      .reduce((sum, each) => sum + each, 0n)
  }
  const settled = (units: bigint) => async (work: () => Promise<unknown>) => {
    const before = [await readBalance(UPTO_SELLER), await booked()] as const
    const result = await work()
    expect((await readBalance(UPTO_SELLER)) - before[0]).toBe(units)
    expect(before[1] - (await booked())).toBe(units)
    return result
  }

  it('cost what a stock seller settles, and the rest comes back to the wallet', async () => {
    const { purchaseId } = z.looseObject({ purchaseId: z.string() }).parse(
      await settled(1_200n)(async () => {
        const bought = await buy('/stock?used=1200')
        expect(bought).toMatchObject({ status: 'delivered', charged: '0.0012', protocol: 'x402-v2' })
        return bought
      }),
    )
    expect(await read(purchaseId)).toMatchObject({ scheme: 'upto', price: '0.005', charged: '0.0012' })
    await expect.poll(async () => (await money()).purse, { timeout: 30_000 }).toEqual([])
  }, 60_000)

  it('cost the maximum where the seller says nothing', async () => {
    await settled(MAXIMUM)(async () =>
      expect(await buy('/stock')).toMatchObject({ status: 'delivered', charged: '0.005' }),
    )
  }, 60_000)

  it('count in the budget for what was charged', async () => {
    const { body } = await owner.send('GET', `/api/agents/keys/${keyId}/usage`)
    expect(JSON.stringify(body)).toContain('0.0062')
  })

  it('are refused above maxAmount by their maximum', async () => {
    expect(await buy('/stock?used=1', undefined, { maxAmount: '0.004' })).toMatchObject({
      code: 'terms_not_payable',
      reason: 'over_max_amount',
    })
  })

  it('are booked as the chain shows, not as the seller says', async () => {
    await settled(MAXIMUM)(async () =>
      expect(await buy('/own/says-less/a')).toMatchObject({ status: 'delivered', charged: '0.005' }),
    )
    await settled(900n)(async () =>
      expect(await buy('/own/free-lie/b')).toMatchObject({ status: 'delivered', charged: '0.0009' }),
    )
  }, 60_000)

  it('settled for nothing are free at once, and never paid later', async () => {
    await settled(0n)(async () =>
      expect(await buy('/own/free/c')).toMatchObject({
        status: 'delivered',
        charged: '0',
        transaction: null,
      }),
    )
    expect(await sellers.settle('c', 1n)).toBe(false)
  }, 60_000)

  it('that were delivered can be settled until the deadline', async () => {
    const bought = await buy('/own/silent/d')
    expect(bought).toMatchObject({ status: 'settlement_pending', charged: '0', response: { status: 200 } })
    expect(await sellers.settle('d', MAXIMUM + 1n)).toBe(false)
    expect(await sellers.settle('d', 300n)).toBe(true)
    await expect
      .poll(() => read(bought.purchaseId), { timeout: 20_000 })
      .toMatchObject({ status: 'delivered', charged: '0.0003' })
    expect(await sellers.settle('d', 300n)).toBe(false)
  }, 60_000)

  it('that nobody settles end at the deadline', async () => {
    const bought = await buy('/own/short/e')
    expect(bought).toMatchObject({ status: 'settlement_pending' })
    await expect
      .poll(() => read(bought.purchaseId), { timeout: 40_000 })
      .toMatchObject({ status: 'delivered', charged: '0' })
    expect(await sellers.settle('e', 1n)).toBe(false)
  }, 60_000)

  it('are presented again to a seller whose node is behind', async () => {
    await settled(700n)(async () =>
      expect(await buy('/own/412-once/f')).toMatchObject({ status: 'delivered', charged: '0.0007' }),
    )
    await settled(0n)(async () =>
      expect(await buy('/own/412/g')).toMatchObject({ code: 'seller_failed', status: 502 }),
    )
    expect(await sellers.settle('g', 1n)).toBe(false)
  }, 60_000)

  it('that were not delivered are taken back', async () => {
    await settled(0n)(async () => expect(await buy('/own/never/h')).toMatchObject({ code: 'seller_failed' }))
    expect(await sellers.settle('h', 1n)).toBe(false)
  }, 60_000)

  it('are paid once when the answer is lost', async () => {
    await settled(800n)(async () =>
      expect(await buy('/own/drops/i')).toMatchObject({ status: 'delivered', charged: '0.0008' }),
    )
  }, 60_000)

  it('have evidence that a third party checks', async () => {
    const bought = await buy('/stock?used=50')
    const { body } = await owner.send('GET', `/api/purchases/${bought.purchaseId}/evidence`)
    expect(body).toMatchObject({
      evidence: {
        challenge: { scheme: 'upto', units: '5000' },
        settlement: { log: { units: '50', nonce: null } },
      },
    })
    const file = join(await mkdtemp(join(tmpdir(), 'bursar-upto-')), 'evidence.json')
    const text = JSON.stringify({ ...body, jwks: await readJson('/.well-known/jwks.json') })
    const verify = () =>
      run(process.execPath, ['.build/bin/main.js', 'audit', 'verify-purchase', file, '--rpc', node.url])
    await writeFile(file, text)
    expect((await verify()).stdout).toContain('paid 0.00005 of 0.005 USDC')
    await writeFile(file, text.replace('"units":"50"', '"units":"60"'))
    await expect(verify()).rejects.toMatchObject({ stdout: expect.stringContaining('not verified') })
  }, 60_000)

  it('follow a replaced block', async () => {
    const bought = await buy('/own/silent/j')
    // All of it, so that nothing is left to sweep in a later block.
    const before = await sellers.chain.blockNumber()
    await sellers.settle('j', MAXIMUM)
    await expect.poll(() => read(bought.purchaseId), { timeout: 20_000 }).toMatchObject({ charged: '0.005' })
    // A job may have had a block mined since.
    await rpc('anvil_reorg', [Number((await sellers.chain.blockNumber()) - before), []])
    await sellers.chain.forget()
    expect(await sellers.settle('j', 450n)).toBe(true)
    await expect
      .poll(() => read(bought.purchaseId), { timeout: 60_000, interval: 500 })
      .toMatchObject({ status: 'delivered', charged: '0.00045' })
  }, 90_000)
})
