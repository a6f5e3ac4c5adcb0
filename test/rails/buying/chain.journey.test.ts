/** Purchases on a chain that loses blocks, or everything. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createPublicClient, erc20Abi, http } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { purchaseOutcome } from '../../../src/books/evidence/purchase-outcome.ts'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../../src/chain/node/anvil-process.ts'
import { isAuthorizationOver } from '../../../src/chain/relay/authorizations.ts'
import { createNodeClient, localNodeOptions } from '../../../src/chain/rpc/client.ts'
import { connectRpcChain } from '../../../src/chain/rpc.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import type { Chain } from '../../../src/providers/chain/port.ts'
import { cancelAuthorization, executePayment, signPayment } from '../../../src/rails/buying/authorization.ts'
import { type Gateway, startGateway } from '../../journeys/gateway.ts'
import { newGuest, type Person } from '../../journeys/people.ts'
import { hasAnvil } from '../selling/x402/world.ts'
import { type FlakySellers, SELLER, startFlakySellers } from './flaky-sellers.ts'

const USDC = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'

const wallet = z.looseObject({
  safeAddress: z.templateLiteral(['0x', z.string()]),
  balances: z.array(z.looseObject({ token: z.string(), amount: z.string(), held: z.string() })),
  purse: z.array(z.looseObject({ agentId: z.string().nullable(), amount: z.string() })),
})

describe.skipIf(!hasAnvil())('purchases on a chain with losses', () => {
  let node: AnvilProcess
  let gateway: Gateway
  let sellers: FlakySellers
  let owner: Person
  let bearer = ''

  beforeAll(async () => {
    node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000)
    gateway = await startGateway({ CHAIN_RPC_URL: node.url })
    sellers = await startFlakySellers(node.url)
    owner = await newGuest(gateway.origin)
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Buyer',
      scopes: ['purchases:pay'],
      policy: {
        perTransaction: { max: '1' },
        dailyBudget: { max: '5' },
        categories: { allow: ['x402'] },
      },
    })
    bearer = `Bearer ${String(body.key)}`
  }, 120_000)
  afterAll(async () => {
    await sellers?.close()
    await gateway?.stop()
    await node?.stop()
  }, 60_000)

  const rpc = async (method: string, params: unknown[] = []) => {
    const response = await fetch(node.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    return response.json()
  }
  const readBalance = (address: `0x${string}`) =>
    createPublicClient({ chain: baseSepolia, transport: http(node.url) }).readContract({
      address: USDC,
      abi: erc20Abi,
      functionName: 'balanceOf',
      args: [address],
    })
  const buy = async (path: string, idempotencyKey: string) => {
    const response = await fetch(`${gateway.origin}/api/purchases`, {
      method: 'POST',
      headers: {
        authorization: bearer,
        'content-type': 'application/json',
        'idempotency-key': idempotencyKey,
      },
      body: JSON.stringify({ url: `${sellers.origin}${path}`, maxAmount: '0.01' }),
    })
    return z
      .looseObject({ status: z.unknown(), purchaseId: z.string().nullish() })
      .parse(await response.json())
  }
  const money = async () => wallet.parse((await owner.send('GET', '/api/wallets')).body)

  it('presents the same payment again until it is delivered', async () => {
    const before = await readBalance(SELLER)
    const first = await buy('/third/one', 'third')
    expect(first).toMatchObject({ status: 'undelivered', charged: '0.001' })
    expect((await owner.send('GET', `/api/purchases/${first.purchaseId}`)).body).toMatchObject({
      status: 'undelivered',
      failure: 'the seller answered the paid request with 504',
    })
    const second = await buy('/third/one', 'third')
    expect(second).toMatchObject({
      status: 'delivered',
      purchaseId: first.purchaseId,
      transaction: first.transaction,
      replayed: true,
    })
    expect((await readBalance(SELLER)) - before).toBe(1_000n)
  })

  it('funds and pays once when the chain drops the money for the purse', async () => {
    const before = await readBalance(SELLER)
    const person = await newGuest(gateway.origin)
    const ask = () =>
      person.send(
        'POST',
        '/api/purchases',
        { url: `${sellers.origin}/honest/dropped`, maxAmount: '0.01' },
        { 'idempotency-key': 'dropped' },
      )
    await rpc('evm_setAutomine', [false])
    const asking = ask()
    const pending = async () => {
      const { result } = z
        .object({ result: z.object({ pending: z.string() }) })
        .parse(await rpc('txpool_status'))
      return Number(result.pending)
    }
    await expect.poll(pending, { timeout: 20_000, interval: 20 }).toBeGreaterThan(0)
    await rpc('anvil_dropAllTransactions')
    expect(await pending()).toBe(0)
    await rpc('evm_setAutomine', [true])
    await asking
    await expect
      .poll(async () => (await ask()).body, { timeout: 100_000, interval: 1_000 })
      .toMatchObject({ status: 'delivered', charged: '0.001' })
    expect((await readBalance(SELLER)) - before).toBe(1_000n)
    const { safeAddress, balances, purse } = wallet.parse((await person.send('GET', '/api/wallets')).body)
    const usdc = balances.find(({ token }) => token === 'USDC')
    expect(usdc?.held).toBe('0')
    expect(await readBalance(safeAddress)).toBe(BigInt(Math.round(Number(usdc?.amount) * 1e6)))
    expect(purse).toContainEqual(expect.objectContaining({ agentId: null, amount: '0' }))
  }, 150_000)

  it('gives a purchase back whose settlement was lost, and keeps a purse that the chain covers', async () => {
    sellers.setTerms('lost', { payTo: SELLER, amount: '1000', seconds: 12 })
    // The purse is filled below the blocks that are lost.
    await rpc('anvil_mine', ['0x8'])
    const bought = await buy('/honest/lost', 'lost')
    expect(bought).toMatchObject({ status: 'delivered', charged: '0.001' })
    const before = await readBalance(SELLER)
    await sleep(2_500)
    await rpc('anvil_reorg', [4, []])
    expect(await readBalance(SELLER)).toBe(before - 1_000n)
    await expect
      .poll(
        async () => {
          await rpc('evm_mine')
          return (await owner.send('GET', `/api/purchases/${bought.purchaseId}`)).body.charged
        },
        { timeout: 60_000, interval: 1_000 },
      )
      .toBe('0')
    const { purse } = await money()
    expect(purse).toMatchObject([{ amount: '0.999' }])
    const { body } = await owner.send('GET', '/api/activity?kind=purchase')
    expect(body.entries).toMatchObject([{ status: 'reversed' }, { status: 'completed' }])
  }, 90_000)

  it('counts a cancellation only once no reorganization can undo it, and a payment that took its place', async () => {
    const log = silentLog
    const chain = await connectRpcChain({ name: 'base-sepolia', url: node.url, log, clock: () => new Date() })
    const client = createNodeClient(localNodeOptions('base-sepolia', node.url))
    // As on a public chain, where the gateway asks for safe blocks.
    const replaceable: Chain = {
      ...chain,
      isAuthorizationOver: (authorization, validBefore) =>
        isAuthorizationOver(client, authorization, { validBefore, blockTag: 'safe', search: undefined }),
    }
    const payer = privateKeyToAccount(generatePrivateKey())
    await chain.mint([{ token: 'USDC', to: payer.address, units: 1_000n }])
    await rpc('anvil_mine', ['0x28'])
    const message = {
      from: payer.address,
      to: SELLER,
      value: 1_000n,
      validAfter: 0n,
      validBefore: BigInt(Math.floor(Date.now() / 1000) + 600),
      nonce: generatePrivateKey(),
    } as const
    const payment = {
      scheme: 'exact',
      token: chain.tokens.USDC,
      from: payer.address,
      to: SELLER,
      units: 1_000n,
      nonce: message.nonce,
      validBefore: new Date(Number(message.validBefore) * 1000),
    } as const
    const outcome = () => purchaseOutcome(replaceable, payment)
    const nonce = generatePrivateKey()
    await cancelAuthorization(chain, payer, { asset: 'USDC', nonce })
    await rpc('anvil_mine', ['0x28'])
    expect(await purchaseOutcome(replaceable, { ...payment, nonce })).toEqual({ status: 'canceled' })
    const signature = await signPayment(chain, payer, { asset: 'USDC', message })
    await cancelAuthorization(chain, payer, { asset: 'USDC', nonce: message.nonce })
    expect(await outcome()).toEqual({ status: 'canceling' })
    await rpc('anvil_reorg', [1, []])
    expect(await outcome()).toEqual({ status: 'open' })
    const before = await readBalance(SELLER)
    await executePayment(chain, { asset: 'USDC', message, signature })
    expect(await outcome()).toMatchObject({ status: 'settled' })
    expect((await readBalance(SELLER)) - before).toBe(1_000n)
    await chain.close()
  }, 60_000)

  it('fills a purse again on a chain that restarted empty', async () => {
    const { safeAddress, balances } = await money()
    const port = Number(new URL(node.url).port)
    await node.stop()
    node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), port, 10_000)
    const units = BigInt(Math.round(Number(balances.find(({ token }) => token === 'USDC')?.amount) * 1e6))
    await expect.poll(() => readBalance(safeAddress).catch(() => 0n), { timeout: 30_000 }).toBe(units)
    // The seller may need a moment longer to find the new chain; what it cannot take stays in the purse.
    await expect
      .poll(() => buy('/honest/after', crypto.randomUUID()), { timeout: 30_000, interval: 500 })
      .toMatchObject({ status: 'delivered' })
    expect((await money()).purse).toMatchObject([{ amount: '0.998' }])
    expect(await readBalance(SELLER)).toBe(1_000n)
  }, 90_000)
})
