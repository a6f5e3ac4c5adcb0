/** Purchases by the scheme `auth-capture`: what is in escrow is held, what was captured is paid, and the rest comes back. */
import { createPublicClient, erc20Abi, http } from 'viem'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { overBothEnginesOnNodes } from '../../journeys/both-engines.ts'
import { newGuest, type Person, requestJson } from '../../journeys/people.ts'
import { ESCROW_PRICE, ESCROW_SELLER, type EscrowSellers, startEscrowSellers } from './escrow-sellers.ts'

const USDC = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const wallet = z.looseObject({
  balances: z.array(z.looseObject({ token: z.string(), amount: z.string(), held: z.string() })),
  purse: z.array(z.looseObject({ amount: z.string() })),
})
const steps = z.array(z.looseObject({ action: z.string(), outcome: z.string() }))
const SLOW = { timeout: 60_000, interval: 300 }

overBothEnginesOnNodes('purchases through an escrow', (world) => {
  let sellers: EscrowSellers
  let owner: Person
  let bearer = ''

  beforeAll(async () => {
    sellers = await startEscrowSellers(world.rpcUrl())
    owner = await newGuest(world.gateway().origin)
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Buyer',
      scopes: ['purchases:pay', 'wallets:read'],
      policy: {
        perTransaction: { max: '0.05' },
        dailyBudget: { max: '0.08' },
        categories: { allow: ['x402'] },
      },
    })
    bearer = `Bearer ${String(body.key)}`
  }, 120_000)
  afterAll(() => sellers?.close(), 60_000)

  const send = async (method: string, path: string, body?: object, key?: string) => {
    const headers = { authorization: bearer, ...(key === undefined ? {} : { 'idempotency-key': key }) }
    const asked = { headers, ...(body === undefined ? {} : { body }) }
    return (await requestJson(world.gateway().origin, method, path, asked)).body
  }
  const buy = (path: string, key: string = crypto.randomUUID()) =>
    send('POST', '/api/purchases', { url: `${sellers.origin}/own/${path}`, maxAmount: '0.01' }, key)
  const read = ({ purchaseId }: Record<string, unknown>) =>
    send('GET', `/api/purchases/${String(purchaseId)}`)
  const open = ({ purchaseId: id }: Record<string, unknown>) =>
    send('POST', '/api/recourse', { object: { kind: 'purchase', id }, reason: 'not_delivered' })
  const readRecourse = ({ recourseId }: Record<string, unknown>) =>
    send('GET', `/api/recourse/${String(recourseId)}`)
  const used = async () => {
    const { usage } = await send('GET', '/api/agents/self')
    return z.looseObject({ used: z.string() }).parse(usage).used
  }
  const untilEnded = async (opened: Record<string, unknown>) => {
    await expect.poll(async () => (await readRecourse(opened)).status, SLOW).not.toBe('open')
    const ended = await readRecourse(opened)
    const tried = steps.parse(ended.steps).map(({ action, outcome }) => `${action} ${outcome}`)
    return { ended, tried }
  }
  /** All USDC of the owner in the books, in smallest units. */
  const readUnits = async () => {
    const { balances, purse } = wallet.parse((await owner.send('GET', '/api/wallets')).body)
    const own = balances.filter(({ token }) => token === 'USDC')
    return [...own.flatMap(({ amount, held }) => [amount, held]), ...purse.map(({ amount }) => amount)]
      .map((amount) => BigInt(Math.round(Number(amount) * 1e6)))
      .reduce((sum, units) => sum + units, 0n)
  }
  const readSeller = () =>
    createPublicClient({ chain: baseSepolia, transport: http(world.rpcUrl()) }).readContract({
      address: USDC,
      abi: erc20Abi,
      functionName: 'balanceOf',
      args: [ESCROW_SELLER],
    })
  /** Runs what must cost so much, in the books as on the chain. */
  const costing = async (units: bigint, work: () => Promise<unknown>, got = units) => {
    const before = [await readUnits(), await readSeller()] as const
    await work()
    await expect.poll(async () => before[0] - (await readUnits()), SLOW).toBe(units)
    expect((await readSeller()) - before[1]).toBe(got)
    // All of it is in the wallet then, and nothing is missing or there twice.
    await expect
      .poll(async () => wallet.parse((await owner.send('GET', '/api/wallets')).body).purse, SLOW)
      .toEqual([])
    expect(before[0] - (await readUnits())).toBe(units)
  }
  const ending = (bought: Record<string, unknown>, shape: object) =>
    expect.poll(() => read(bought), SLOW).toMatchObject(shape)

  it('are pending while the price is in escrow, and paid once it is captured', async () => {
    await costing(ESCROW_PRICE, async () => {
      const bought = await buy('deliver/a')
      expect(bought).toMatchObject({ status: 'settlement_pending', charged: '0', response: { status: 200 } })
      expect(await sellers.state('a')).toMatchObject({ capturable: ESCROW_PRICE })
      expect(await sellers.captureElsewhere('a')).toBe(false)
      expect(await sellers.act('a', 'capture', ESCROW_PRICE + 1n)).toBe(false)
      expect(await sellers.act('a', 'capture')).toBe(true)
      expect(await sellers.act('a', 'capture')).toBe(false)
      await ending(bought, { status: 'delivered', charged: '0.005', scheme: 'auth-capture', price: '0.005' })
      const { body } = await owner.send('GET', `/api/purchases/${String(bought.purchaseId)}/evidence`)
      expect(body).toMatchObject({
        evidence: { challenge: { scheme: 'auth-capture' }, settlement: { log: { units: '5000' } } },
      })
    })
  }, 120_000)

  it('that are charged at once are paid at once', async () => {
    await costing(ESCROW_PRICE, async () =>
      expect(await buy('charge/bound-b')).toMatchObject({ status: 'delivered', charged: '0.005' }),
    )
  }, 120_000)

  it('are signed once, whatever is repeated', async () => {
    await costing(ESCROW_PRICE, async () => {
      const bought = await buy('deliver/c', 'c')
      const again = await Promise.all([buy('deliver/c', 'c'), buy('deliver/c', 'c')])
      for (const one of again) expect(one.purchaseId).toBe(bought.purchaseId)
      expect(sellers.count('c').paid).toBe(1)
      await sellers.act('c', 'capture')
      await ending(bought, { status: 'delivered' })
    })
  }, 120_000)

  it('cost what was captured in time, and the rest comes back unasked', async () => {
    const before = await used()
    await costing(1_500n, async () => {
      const bought = await buy('deliver/mute-d?capture=25')
      expect(await sellers.act('mute-d', 'capture', 1_000n)).toBe(true)
      expect(await sellers.act('mute-d', 'capture', 500n)).toBe(true)
      expect(await sellers.act('mute-d', 'reclaim')).toBe(false)
      await ending(bought, { status: 'delivered', charged: '0.0015' })
      expect(await sellers.act('mute-d', 'capture', 1n)).toBe(false)
    })
    expect(Number(await used())).toBeCloseTo(Number(before) + 0.0015, 6)
  }, 120_000)

  it('that authorize less give the rest back with the capture', async () => {
    await costing(3_000n, async () => {
      const bought = await buy('lower/e')
      expect(await sellers.act('e', 'capture', 3_000n)).toBe(true)
      await ending(bought, { status: 'delivered', charged: '0.003' })
    })
  }, 120_000)

  it('that nobody moves into escrow are cancelled, and can never be', async () => {
    const before = await used()
    await costing(0n, async () => {
      expect(await buy('never/f')).toMatchObject({ code: 'seller_failed' })
      expect(await sellers.act('f', 'authorize')).toBe(false)
    })
    expect(await used()).toBe(before)
  }, 120_000)

  it('come back by recourse when the seller voids them, and not when it only says so', async () => {
    const before = await used()
    await costing(0n, async () => {
      const bought = await buy('silent/g?capture=30')
      expect(bought).toMatchObject({ status: 'settlement_pending', charged: '0' })
      const opened = await open(bought)
      expect(opened).toMatchObject({ status: 'open', claimed: '0.005', recovered: '0', route: 'void' })
      // It was promised, and nothing has happened.
      expect(await readRecourse(opened)).toMatchObject({ status: 'open', recovered: '0' })
      expect(await sellers.act('g', 'void')).toBe(true)
      expect(await sellers.act('g', 'capture')).toBe(false)
      const { ended, tried } = await untilEnded(opened)
      expect(tried).toEqual(['void waiting', 'void done'])
      expect(ended).toMatchObject({ status: 'recovered', recovered: '0.005', route: 'void' })
      expect(sellers.count('g').asked).toBe(1)
    })
    await costing(0n, async () => {
      const opened = await open(await buy('silent/h?capture=30'))
      const { ended, tried } = await untilEnded(opened)
      // Another job may send the transaction before the recourse looks again.
      expect(tried.filter((step) => step !== 'reclaim waiting')).toEqual(['void waiting', 'reclaim done'])
      expect(ended).toMatchObject({ status: 'recovered', recovered: '0.005', route: 'reclaim' })
    })
    await costing(0n, async () => {
      const { tried } = await untilEnded(await open(await buy('silent/refuse-i?capture=30')))
      expect(tried.filter((step) => step !== 'reclaim waiting')).toEqual(['void refused', 'reclaim done'])
    })
    expect(await used()).toBe(before)
  }, 240_000)

  it('are booked as the chain has them when a capture is faster', async () => {
    await costing(2_000n, async () => {
      const bought = await buy('silent/j?capture=30')
      sellers.onAsked('j', () => sellers.act('j', 'capture', 2_000n))
      const opened = await open(bought)
      await expect.poll(async () => (await readRecourse(opened)).recovered, SLOW).toBe('0.003')
      expect(await read(bought)).toMatchObject({ charged: '0.002' })
      // What is left to get back is what was captured, by a refund of the escrow.
      expect(await readRecourse(opened)).toMatchObject({ status: 'open', claimed: '0.005' })
    })
  }, 240_000)

  it('that the escrow refunds are recovered, once, and never above what was paid', async () => {
    const before = await used()
    const bought = await buy('charge/k')
    const opened = await owner.send('POST', '/api/recourse', {
      object: { kind: 'purchase', id: bought.purchaseId },
      reason: 'not_as_described',
    })
    expect(opened.body).toMatchObject({ status: 'open', claimed: '0.005' })
    await costing(
      -ESCROW_PRICE,
      async () => {
        expect(await sellers.act('k', 'refund', 2_000n)).toBe(true)
        await expect.poll(async () => (await readRecourse(opened.body)).recovered, SLOW).toBe('0.002')
        expect(await sellers.act('k', 'refund', 3_001n)).toBe(false)
        expect(await sellers.act('k', 'refund', 3_000n)).toBe(true)
        const { ended } = await untilEnded(opened.body)
        expect(ended).toMatchObject({ status: 'recovered', recovered: '0.005' })
      },
      0n,
    )
    expect(await read(bought)).toMatchObject({ charged: '0.005', refunded: '0.005' })
    expect(await used()).toBe(before)
  }, 240_000)
})
