/** Money back of purchases by channel: the channel is closed, and only what its seller claims on the chain is paid. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import type { Chain } from '../../src/providers/chain/port.ts'
import {
  type ChannelSeller,
  connectSellers,
  PRICE,
  startChannelSeller,
} from '../rails/buying/channel-sellers.ts'
import { overBothEnginesOnNodes } from './both-engines.ts'
import { newGuest, type Person, requestJson } from './people.ts'

const wallet = z.looseObject({
  balances: z.array(z.looseObject({ token: z.string(), amount: z.string(), held: z.string() })),
  purse: z.array(z.looseObject({ amount: z.string() })),
})
const steps = z.array(
  z.looseObject({ action: z.string(), outcome: z.string(), evidence: z.record(z.string(), z.string()) }),
)

overBothEnginesOnNodes('recourse on purchases by channel', (world) => {
  let chain: Chain
  let owner: Person
  const sellers: ChannelSeller[] = []

  beforeAll(async () => {
    chain = await connectSellers(world.rpcUrl())
    owner = await newGuest(world.gateway().origin)
  }, 60_000)
  afterAll(async () => {
    await Promise.all(sellers.map((seller) => seller.close().catch(() => undefined)))
    await chain?.close()
  }, 60_000)

  const rpc = async (method: string, params: unknown[] = []) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    await fetch(world.rpcUrl(), { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  }
  /** All USDC of the owner, in smallest units. */
  const readUnits = async () => {
    const { balances, purse } = wallet.parse((await owner.send('GET', '/api/wallets')).body)
    const own = balances.filter(({ token }) => token === 'USDC')
    return [...own.flatMap(({ amount, held }) => [amount, held]), ...purse.map(({ amount }) => amount)]
      .map((amount) => BigInt(Math.round(Number(amount) * 1e6)))
      .reduce((sum, units) => sum + units, 0n)
  }
  const scene = async () => {
    const seller = await startChannelSeller(chain)
    sellers.push(seller)
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Buyer',
      scopes: ['purchases:pay', 'wallets:read'],
      policy: {
        perTransaction: { max: '0.05' },
        dailyBudget: { max: '5' },
        categories: { allow: ['x402'] },
      },
    })
    const send = async (method: string, path: string, sent?: object, key?: string) => {
      const headers = {
        authorization: `Bearer ${String(body.key)}`,
        ...(key === undefined ? {} : { 'idempotency-key': key }),
      }
      const asked = { headers, ...(sent === undefined ? {} : { body: sent }) }
      return (await requestJson(world.gateway().origin, method, path, asked)).body
    }
    return {
      seller,
      buy: async () => {
        const url = `${seller.origin}/call/a`
        const key = crypto.randomUUID()
        return send('POST', '/api/purchases', { url, maxAmount: '0.01' }, key)
      },
      open: ({ purchaseId: id }: Record<string, unknown>) =>
        send('POST', '/api/recourse', { object: { kind: 'purchase', id }, reason: 'not_delivered' }),
      read: ({ recourseId }: Record<string, unknown>) => send('GET', `/api/recourse/${String(recourseId)}`),
      purchase: ({ purchaseId }: Record<string, unknown>) =>
        send('GET', `/api/purchases/${String(purchaseId)}`),
      channels: async () =>
        z
          .array(z.looseObject({ id: z.string(), status: z.string(), withdrawableAt: z.unknown() }))
          .parse((await send('GET', '/api/channels')).channels),
      used: async () => {
        const { usage } = await send('GET', '/api/agents/self')
        return z.looseObject({ used: z.string() }).parse(usage).used
      },
    }
  }
  type Scene = Awaited<ReturnType<typeof scene>>
  /** Waits until a recourse has ended. @returns it, and what it tried. */
  const untilEnded = async ({ read }: Scene, opened: Record<string, unknown>) => {
    await expect
      .poll(async () => (await read(opened)).status, { timeout: 100_000, interval: 500 })
      .not.toBe('open')
    const ended = await read(opened)
    const tried = steps.parse(ended.steps).map(({ action, outcome }) => `${action} ${outcome}`)
    return { ended, tried }
  }

  it('takes a voucher back that its seller did not take', async () => {
    const own = await scene()
    expect(await own.buy()).toMatchObject({ status: 'delivered' })
    const before = await own.used()
    own.seller.refuse(3)
    const bought = await own.buy()
    expect(bought).toMatchObject({ status: 'settlement_pending', charged: '0' })
    const opened = await own.open(bought)
    expect(opened).toMatchObject({ status: 'open', route: 'channel_close', claimed: '0.0005' })
    const { ended, tried } = await untilEnded(own, opened)
    expect(tried).toEqual(['channel_close waiting', 'channel_close done'])
    expect(ended).toMatchObject({ status: 'recovered', recovered: '0.0005', route: 'channel_close' })
    expect(await own.purchase(bought)).toMatchObject({ status: 'failed', charged: '0' })
    expect(await own.used()).toBe(before)
    expect(await own.channels()).toMatchObject([{ status: 'closed', claimed: '0.0005' }])
  }, 120_000)

  it('gets nothing of what the seller has claimed, whatever it did not deliver', async () => {
    const own = await scene()
    await own.buy()
    own.seller.lose(3)
    const bought = await own.buy()
    expect(bought).toMatchObject({ status: 'undelivered', charged: '0.0005' })
    // It goes on losing what it is asked for again.
    own.seller.lose(9)
    const { ended, tried } = await untilEnded(own, await own.open(bought))
    expect(tried).toEqual([
      'present_again failed',
      'channel_close waiting',
      'channel_close raced',
      'none failed',
    ])
    expect(ended).toMatchObject({ status: 'impossible', recovered: '0', route: 'none' })
    expect(String(ended.hint)).toMatch(/declares no refunds/)
    expect(await own.purchase(bought)).toMatchObject({ status: 'undelivered', refunded: '0' })
  }, 120_000)

  it('gets back what a seller that is gone has booked and never claimed, and no more', async () => {
    const own = await scene()
    const units = await readUnits()
    const first = await own.buy()
    expect(first).toMatchObject({ status: 'delivered' })
    await own.seller.claim()
    const before = await own.used()
    own.seller.lose(3)
    const bought = await own.buy()
    expect(bought).toMatchObject({ status: 'undelivered', charged: '0.0005' })
    await own.seller.close()
    // One recourse, however often it is asked for.
    const asked = await Promise.all(Array.from({ length: 20 }, () => own.open(bought)))
    expect(new Set(asked.map(({ recourseId }) => recourseId)).size).toBe(1)
    const [opened = {}] = asked
    expect(await own.read(opened)).toMatchObject({ status: 'open', recovered: '0' })
    await expect
      .poll(async () => (await own.channels())[0], { timeout: 100_000, interval: 500 })
      .toMatchObject({ status: 'exiting', withdrawableAt: expect.any(String) })
    // Nothing counts before the chain shows it.
    expect(await own.read(opened)).toMatchObject({ status: 'open', recovered: '0' })
    await rpc('evm_increaseTime', [901])
    await rpc('evm_mine')
    const { ended, tried } = await untilEnded(own, opened)
    expect(tried).toEqual([
      'present_again failed',
      'channel_close waiting',
      'channel_close done',
      'refund done',
    ])
    expect(ended).toMatchObject({ status: 'recovered', recovered: '0.0005', route: 'channel_close' })
    expect(await own.purchase(bought)).toMatchObject({ refunded: '0.0005' })
    expect(await own.used()).toBe(before)
    // The first one was claimed before.
    const other = await owner.send('POST', '/api/recourse', {
      object: { kind: 'purchase', id: first.purchaseId },
      reason: 'not_as_described',
    })
    expect(other.body).toMatchObject({ status: 'impossible', recovered: '0' })
    expect(await readUnits()).toBe(units - PRICE)
  }, 240_000)
})
