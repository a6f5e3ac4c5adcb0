/** Purchases by payment channel: vouchers instead of transactions, and at the end what the chain shows. */
import { createPublicClient, erc20Abi, http } from 'viem'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../../src/chain/node/anvil-process.ts'
import type { Chain } from '../../../src/providers/chain/port.ts'
import { type Gateway, startGateway } from '../../journeys/gateway.ts'
import { newGuest, type Person } from '../../journeys/people.ts'
import { hasAnvil } from '../selling/x402/world.ts'
import { type ChannelSeller, connectSellers, PRICE, startChannelSeller } from './channel-sellers.ts'

const USDC = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'

const wallet = z.looseObject({
  balances: z.array(z.looseObject({ token: z.string(), amount: z.string(), held: z.string() })),
  purse: z.array(z.looseObject({ agentId: z.string().nullable(), amount: z.string() })),
})
const channels = z.looseObject({
  channels: z.array(
    z.looseObject({
      id: z.string(),
      origin: z.string(),
      deposit: z.string(),
      spent: z.string(),
      claimed: z.string(),
      status: z.string(),
      withdrawableAt: z.string().nullable(),
    }),
  ),
})

describe.skipIf(!hasAnvil())('purchases by channel', () => {
  let node: AnvilProcess
  let gateway: Gateway
  let chain: Chain
  let owner: Person
  const sellers: ChannelSeller[] = []

  beforeAll(async () => {
    node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000)
    gateway = await startGateway({ CHAIN_RPC_URL: node.url, RATE_MUTATIONS: '100000/60' })
    chain = await connectSellers(node.url)
    owner = await newGuest(gateway.origin)
  }, 120_000)
  afterAll(async () => {
    await Promise.all(sellers.map((seller) => seller.close().catch(() => undefined)))
    await chain?.close()
    await gateway?.stop()
    await node?.stop()
  }, 60_000)

  const rpc = async (method: string, params: unknown[] = []) => {
    const response = await fetch(node.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    return z.object({ result: z.unknown() }).parse(await response.json()).result
  }
  const blocks = async () => Number(await rpc('eth_blockNumber'))
  const balanceOf = (address: `0x${string}`) =>
    createPublicClient({ chain: baseSepolia, transport: http(node.url) }).readContract({
      address: USDC,
      abi: erc20Abi,
      functionName: 'balanceOf',
      args: [address],
    })
  const newSeller = async (options: Parameters<typeof startChannelSeller>[1] = {}) => {
    const seller = await startChannelSeller(chain, options)
    sellers.push(seller)
    return seller
  }
  const newBuyer = async (policy: object = {}) => {
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Buyer',
      scopes: ['purchases:pay', 'wallets:read'],
      policy: {
        perTransaction: { max: '0.05' },
        dailyBudget: { max: '5' },
        categories: { allow: ['x402'] },
        ...policy,
      },
    })
    const bearer = `Bearer ${String(body.key)}`
    const send = async (method: string, path: string, sent?: object, idempotencyKey?: string) => {
      const response = await fetch(`${gateway.origin}${path}`, {
        method,
        headers: {
          authorization: bearer,
          'content-type': 'application/json',
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
        },
        ...(sent === undefined ? {} : { body: JSON.stringify(sent) }),
      })
      return z
        .looseObject({ status: z.unknown().optional(), purchaseId: z.string().nullish() })
        .parse(await response.json())
    }
    return {
      keyId: String(body.keyId ?? body.id),
      buy: (seller: ChannelSeller, name = 'a', key: string = crypto.randomUUID()) =>
        send('POST', '/api/purchases', { url: `${seller.origin}/call/${name}`, maxAmount: '0.01' }, key),
      channelTo: async ({ origin }: ChannelSeller) =>
        channels
          .parse(await send('GET', '/api/channels'))
          .channels.filter((channel) => channel.origin === origin),
      close: (id: string) => send('POST', `/api/channels/${id}/close`, {}),
    }
  }
  type Buyer = Awaited<ReturnType<typeof newBuyer>>
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
  const untilClosed = (buyer: Buyer, seller: ChannelSeller) =>
    expect
      .poll(async () => (await buyer.channelTo(seller)).map(({ status }) => status), {
        timeout: 60_000,
        interval: 500,
      })
      .toEqual(['closed'])
  const untilSwept = (buyer: Buyer) =>
    expect
      .poll(async () => (await money()).purse.filter(({ agentId }) => agentId === buyer.keyId), {
        timeout: 30_000,
        interval: 500,
      })
      .toEqual([])

  it('open a channel once, and then buy without a transaction', async () => {
    const [seller, buyer, before] = [await newSeller(), await newBuyer(), await booked()]
    expect(await buyer.buy(seller)).toMatchObject({
      status: 'delivered',
      charged: '0.0005',
      transaction: null,
    })
    expect(await buyer.channelTo(seller)).toMatchObject([
      { deposit: '0.05', spent: '0.0005', status: 'open', claimed: '0' },
    ])
    const start = await blocks()
    for (let n = 0; n < 50; n += 1)
      expect(await buyer.buy(seller, `b${n}`)).toMatchObject({ status: 'delivered', charged: '0.0005' })
    expect(await blocks()).toBe(start)
    expect(seller.served()).toBe(51)
    expect([...(await seller.charged()).values()]).toEqual([51n * PRICE])
    expect(before - (await booked())).toBe(51n * PRICE)
    const [channel] = await buyer.channelTo(seller)
    expect(await buyer.close(String(channel?.id))).toMatchObject({ status: 'closing' })
    await untilClosed(buyer, seller)
    await untilSwept(buyer)
    expect(await buyer.channelTo(seller)).toMatchObject([{ claimed: '0.0255', spent: '0.0255' }])
    await seller.claim()
    expect(await balanceOf(seller.payTo)).toBe(51n * PRICE)
    expect(before - (await booked())).toBe(51n * PRICE)
  }, 120_000)

  it('ask for the price once, and decide on another one anew', async () => {
    const [seller, buyer, before] = [await newSeller(), await newBuyer(), await booked()]
    // The second is the first by a channel that is open.
    for (let n = 0; n < 5; n += 1)
      expect(await buyer.buy(seller)).toMatchObject({ status: 'delivered', charged: '0.0005', attempts: 1 })
    expect(seller.asked()).toBeLessThanOrEqual(2)
    seller.setPrice('$0.00055')
    const [key, asked] = [crypto.randomUUID(), seller.asked()]
    const dearer = await buyer.buy(seller, 'a', key)
    expect(dearer).toMatchObject({ status: 'delivered', charged: '0.00055' })
    expect(await buyer.buy(seller, 'a', key)).toMatchObject({
      ...{ status: 'delivered', replayed: true, purchaseId: dearer.purchaseId },
    })
    // One that refused what it had been delivering for is asked from then on.
    expect(seller.asked()).toBe(asked + 1)
    seller.setPrice('$0.0005')
    expect(await buyer.buy(seller)).toMatchObject({ status: 'delivered', charged: '0.0005' })
    expect(seller.asked()).toBe(asked + 2)
    // The refused voucher is worth nothing any more: its purchase ends unpaid.
    const charged = 6n * PRICE + 550n
    expect([...(await seller.charged()).values()]).toEqual([charged])
    expect(before - (await booked())).toBe(charged)
    const { body } = await owner.send('GET', '/api/purchases')
    expect(JSON.stringify(body)).toContain('the seller asked for other terms once it had the payment')
    expect(await buyer.channelTo(seller)).toMatchObject([{ spent: '0.00355', status: 'open' }])
  }, 60_000)

  it('are denied by the policy where a known price was raised', async () => {
    const [seller, buyer, before] = [await newSeller(), await newBuyer(), await booked()]
    for (let n = 0; n < 3; n += 1) await buyer.buy(seller)
    seller.setPrice('$0.0008')
    expect(await buyer.buy(seller)).toMatchObject({ code: 'price_changed' })
    seller.setPrice('$0.0005')
    expect(await buyer.buy(seller)).toMatchObject({ status: 'delivered' })
    expect([...(await seller.charged()).values()]).toEqual([4n * PRICE])
    expect(before - (await booked())).toBe(4n * PRICE)
  }, 60_000)

  it('pay no more than the caller agreed to when the price is raised beyond it', async () => {
    const [seller, buyer, before] = [await newSeller(), await newBuyer(), await booked()]
    for (let n = 0; n < 3; n += 1) await buyer.buy(seller)
    seller.setPrice('$0.02')
    expect(await buyer.buy(seller)).toMatchObject({ status: 'settlement_pending', charged: '0' })
    expect(await buyer.buy(seller)).toMatchObject({ code: 'terms_not_payable' })
    seller.setPrice('$0.0005')
    expect(await buyer.buy(seller)).toMatchObject({ status: 'delivered' })
    expect([...(await seller.charged()).values()]).toEqual([4n * PRICE])
    expect(before - (await booked())).toBe(4n * PRICE)
  }, 60_000)

  it('are closed and seen by their key and its owner only', async () => {
    const [seller, buyer, other] = [await newSeller(), await newBuyer(), await newBuyer()]
    await buyer.buy(seller)
    const [channel] = await buyer.channelTo(seller)
    const id = String(channel?.id)
    expect(await other.channelTo(seller)).toEqual([])
    expect(await other.close(id)).toMatchObject({ code: 'not_found', status: 404 })
    const stranger = await newGuest(gateway.origin)
    expect((await stranger.send('POST', `/api/channels/${id}/close`, {})).status).toBe(404)
    expect(await buyer.channelTo(seller)).toMatchObject([{ status: 'open' }])
    expect((await owner.send('POST', `/api/channels/${id}/close`, {})).body).toMatchObject({
      status: 'closing',
    })
  }, 60_000)

  it('charge a lost answer once, and go on', async () => {
    const [seller, buyer, before] = [await newSeller(), await newBuyer(), await booked()]
    await buyer.buy(seller)
    seller.lose(1)
    expect(await buyer.buy(seller, 'lost')).toMatchObject({ status: 'undelivered', charged: '0.0005' })
    expect(await buyer.buy(seller, 'next')).toMatchObject({ status: 'delivered' })
    expect([...(await seller.charged()).values()]).toEqual([3n * PRICE])
    expect(before - (await booked())).toBe(3n * PRICE)
  }, 60_000)

  it('use the voucher of a refused purchase for the next one', async () => {
    const [seller, buyer, before] = [await newSeller(), await newBuyer(), await booked()]
    await buyer.buy(seller)
    seller.refuse(3)
    const refused = await buyer.buy(seller, 'refused')
    expect(refused).toMatchObject({ status: 'settlement_pending', charged: '0' })
    expect(await buyer.buy(seller, 'next')).toMatchObject({ status: 'delivered' })
    expect(await read(refused.purchaseId)).toMatchObject({ status: 'failed', charged: '0' })
    expect([...(await seller.charged()).values()]).toEqual([2n * PRICE])
    expect(before - (await booked())).toBe(2n * PRICE)
  }, 60_000)

  it('open another channel when the deposit is used up', async () => {
    const [seller, buyer, before] = [await newSeller({ price: '$0.009' }), await newBuyer(), await booked()]
    // A deposit is a hundred prices.
    for (let n = 0; n < 112; n += 1)
      expect(await buyer.buy(seller, `c${n}`)).toMatchObject({ status: 'delivered', charged: '0.009' })
    expect((await buyer.channelTo(seller)).map(({ status, spent }) => [status === 'open', spent])).toEqual([
      [true, '0.108'],
      [false, '0.9'],
    ])
    expect(before - (await booked())).toBe(112n * 9_000n)
    // Nothing is left to return, so it is closed once the seller has claimed it.
    await seller.claim()
    await expect
      .poll(async () => (await buyer.channelTo(seller)).at(-1), { timeout: 30_000 })
      .toMatchObject({ status: 'closed', claimed: '0.9' })
    expect(before - (await booked())).toBe(112n * 9_000n)
  }, 120_000)

  it('stop at the budget of their key', async () => {
    const seller = await newSeller({ price: '$0.009' })
    const buyer = await newBuyer({ dailyBudget: { max: '0.05' } })
    for (let n = 0; n < 5; n += 1)
      expect(await buyer.buy(seller, `d${n}`)).toMatchObject({ status: 'delivered' })
    expect(await buyer.buy(seller, 'e')).toMatchObject({ code: 'policy_denied' })
    // No more than the key may spend is ever deposited.
    expect(await buyer.channelTo(seller)).toMatchObject([{ spent: '0.045', deposit: '0.05' }])
    expect([...(await seller.charged()).values()]).toEqual([45_000n])
  }, 60_000)

  it('are refused where the seller would keep the rest for long', async () => {
    const [seller, buyer] = [await newSeller({ withdrawDelay: 86_401 }), await newBuyer()]
    expect(await buyer.buy(seller)).toMatchObject({
      code: 'terms_not_payable',
      reason: 'withdraw_delay_not_accepted',
    })
  }, 60_000)

  it('are made one after the other, however many are asked for at once', async () => {
    const [seller, buyer, before] = [await newSeller(), await newBuyer(), await booked()]
    const bought = await Promise.all(Array.from({ length: 12 }, (_, n) => buyer.buy(seller, `f${n}`)))
    expect(bought.map(({ status }) => status)).toEqual(bought.map(() => 'delivered'))
    expect([...(await seller.charged()).values()].reduce((sum, each) => sum + each, 0n)).toBe(12n * PRICE)
    expect(before - (await booked())).toBe(12n * PRICE)
  }, 60_000)

  it('end with the chain when the seller is gone, claims late, or their key is revoked', async () => {
    const [gone, late, revoked] = await Promise.all([newSeller(), newSeller(), newSeller()])
    const [buyer, other] = [await newBuyer(), await newBuyer()]
    const before = await booked()
    for (let n = 0; n < 3; n += 1) {
      await buyer.buy(gone, `g${n}`)
      await buyer.buy(late, `g${n}`)
      await other.buy(revoked, `g${n}`)
    }
    // An old voucher is claimed first, and the rest within the delay of our exit.
    await late.claim()
    await buyer.buy(late, 'more')
    expect(before - (await booked())).toBe(10n * PRICE)
    await gone.close()
    await owner.send('DELETE', `/api/agents/keys/${other.keyId}`)
    late.refuse(1)
    for (const seller of [gone, late])
      for (const { id } of await buyer.channelTo(seller)) await buyer.close(id)
    const statusOf = async (seller: ChannelSeller) =>
      (await buyer.channelTo(seller)).map(({ status }) => status)
    for (const seller of [gone, late])
      await expect.poll(() => statusOf(seller), { timeout: 100_000, interval: 500 }).toEqual(['exiting'])
    await expect
      .poll(async () => (await buyer.channelTo(late))[0]?.withdrawableAt, { timeout: 20_000 })
      .not.toBe(null)
    await expect
      .poll(async () => (await buyer.channelTo(gone))[0]?.withdrawableAt, { timeout: 20_000 })
      .not.toBe(null)
    await late.claim()
    await rpc('evm_increaseTime', [901])
    await rpc('evm_mine')
    await untilClosed(buyer, gone)
    await untilClosed(buyer, late)
    expect(await buyer.channelTo(gone)).toMatchObject([{ spent: '0', claimed: '0' }])
    expect(await buyer.channelTo(late)).toMatchObject([{ spent: '0.002', claimed: '0.002' }])
    // Nothing of what the vanished seller never claimed is paid.
    expect(before - (await booked())).toBe(7n * PRICE)
  }, 240_000)
})
