/**
 * Money back from those who lie about it: sellers, processors and banks, over HTTP on both engines. What came back is what the chain and
 * the books show, once, and never more than was paid.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import type { Chain } from '../../src/providers/chain/port.ts'
import { connectSellers } from '../rails/buying/channel-sellers.ts'
import { PRICE, type RefundingSeller, startRefundingSeller } from '../rails/buying/refunding-sellers.ts'
import { overBothEnginesOnNodes } from './both-engines.ts'
import { newGuest, type Person, requestJson } from './people.ts'

const STRANGER = '0x00000000000000000000000000000000000a11ce'
const DAY_S = 86_400
const text = z.string()
const wallet = z.looseObject({
  balances: z.array(z.looseObject({ token: text, amount: text, held: text })),
  purse: z.array(z.looseObject({ asset: text, amount: text })),
})
type Json = Record<string, unknown>

overBothEnginesOnNodes('recourse against liars', (world) => {
  let chain: Chain
  let owner: Person
  let send: (
    method: string,
    path: string,
    body?: object,
    key?: string,
  ) => Promise<{ status: number; body: Json }>
  const sellers: RefundingSeller[] = []

  beforeAll(async () => {
    chain = await connectSellers(world.rpcUrl())
    owner = await newGuest(world.gateway().origin)
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Buyer',
      scopes: ['purchases:pay', 'wallets:read'],
      policy: { perTransaction: { max: '1' }, dailyBudget: { max: '5' }, categories: { allow: ['x402'] } },
    })
    send = (method, path, sent, key) =>
      requestJson(world.gateway().origin, method, path, {
        ...(sent === undefined ? {} : { body: sent }),
        headers: {
          authorization: `Bearer ${String(body.key)}`,
          ...(key === undefined ? {} : { 'idempotency-key': key }),
        },
      })
  }, 60_000)
  afterAll(async () => {
    await Promise.all(sellers.map((seller) => seller.close()))
    await chain?.close()
  }, 60_000)

  const newSeller = async (conduct: Parameters<typeof startRefundingSeller>[1] = {}) => {
    const seller = await startRefundingSeller({ rpcUrl: world.rpcUrl(), chain }, conduct)
    sellers.push(seller)
    return seller
  }
  const buy = async ({ origin }: RefundingSeller) =>
    (await send('POST', '/api/purchases', { url: `${origin}/sold`, maxAmount: '0.01' }, crypto.randomUUID()))
      .body
  const request = (id: unknown, reason = 'not_delivered') => ({
    object: { kind: 'purchase', id },
    reason,
  })
  const open = async ({ purchaseId }: Json, reason?: string) =>
    (await send('POST', '/api/recourse', request(purchaseId, reason))).body
  const read = async ({ recourseId }: Json) => (await send('GET', `/api/recourse/${recourseId}`)).body
  const readPurchase = async ({ purchaseId }: Json) =>
    (await send('GET', `/api/purchases/${purchaseId}`)).body
  const untilStatus = async (opened: Json, status: string) => {
    await expect.poll(async () => (await read(opened)).status, { interval: 300 }).toBe(status)
    return read(opened)
  }
  /** All USDC of the owner, in smallest units. */
  const readUnits = async () => {
    const { balances, purse } = wallet.parse((await owner.send('GET', '/api/wallets')).body)
    const own = balances.filter(({ token }) => token === 'USDC')
    const purses = purse.filter(({ asset }) => asset === 'USDC')
    return [...own.flatMap(({ amount, held }) => [amount, held]), ...purses.map(({ amount }) => amount)]
      .map((amount) => BigInt(Math.round(Number(amount) * 1e6)))
      .reduce((sum, units) => sum + units, 0n)
  }
  const untilUnits = (units: bigint) => expect.poll(readUnits, { interval: 300 }).toBe(units)
  const readUsed = async () => {
    const { body } = await send('GET', '/api/agents/self')
    return z.looseObject({ usage: z.looseObject({ used: text }) }).parse(body).usage.used
  }
  const undelivered = { status: 'undelivered', charged: '0.001' }
  const recovered = { status: 'recovered', claimed: '0.001', recovered: '0.001', route: 'refund_request' }

  it.each([
    [
      'twice',
      2n,
      async (seller: RefundingSeller) => {
        await seller.send(PRICE)
        await seller.send(PRICE)
      },
    ],
    ['more than was paid', 3n, (seller: RefundingSeller) => seller.send(3n * PRICE)],
  ])('counts what was paid once, where a seller refunds %s', async (_, times, onAsked) => {
    const [before, used] = [await readUnits(), await readUsed()]
    const bought = await buy(await newSeller({ onAsked }))
    expect(bought).toMatchObject(undelivered)
    expect(await untilStatus(await open(bought), 'recovered')).toMatchObject(recovered)
    // The rest is a deposit.
    await untilUnits(before - PRICE + times * PRICE)
    expect(await readPurchase(bought)).toMatchObject({ status: 'undelivered', refunded: '0.001' })
    expect(await readUsed()).toBe(used)
    const { body } = await owner.send('GET', '/api/activity?kind=deposit')
    const linked = z
      .array(z.looseObject({ refundOf: z.looseObject({ id: text }).nullable() }))
      .parse(body.entries)
      .filter(({ refundOf }) => refundOf?.id === bought.purchaseId)
    expect(linked).toHaveLength(1)
  })

  it('counts a refund once, where a seller refunds first and settles then', async () => {
    const [before, used] = [await readUnits(), await readUsed()]
    let isFirst = true
    const seller = await newSeller({
      onPaid: async ({ take }, own) => {
        if (isFirst) await own.send(PRICE)
        isFirst = false
        await take()
      },
    })
    const bought = await buy(seller)
    expect(bought).toMatchObject(undelivered)
    expect(await untilStatus(await open(bought), 'recovered')).toMatchObject({ recovered: '0.001' })
    await untilUnits(before)
    expect(await readUsed()).toBe(used)
  })

  it('is one recourse and one request to the seller, however many press at once', async () => {
    const seller = await newSeller({ onAsked: (own) => own.send(PRICE) })
    const bought = await buy(seller)
    const body = request(bought.purchaseId)
    const pressed = await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        at % 2 === 0 ? owner.send('POST', '/api/recourse', body) : send('POST', '/api/recourse', body),
      ),
    )
    expect(new Set(pressed.map(({ status }) => status))).toEqual(new Set([200]))
    expect(new Set(pressed.map((answer) => answer.body.recourseId)).size).toBe(1)
    await untilStatus(pressed[0]?.body ?? {}, 'recovered')
    expect(seller.requests).toEqual([bought.purchaseId])
  })

  it('never returns more than was taken, where the seller, the owner and the agent are all at it', async () => {
    for (const delayMs of [0, 300, 3_000]) {
      const before = await readUnits()
      let isTaken = false
      let sent = 0n
      const refund = async (seller: RefundingSeller) => {
        sent += PRICE
        await seller.send(PRICE)
      }
      const seller = await newSeller({
        onPaid: async ({ take }, own) => {
          const [, taken] = await Promise.all([refund(own), pause(delayMs).then(take)])
          isTaken ||= taken
        },
        onAsked: (own) => Promise.all([refund(own), refund(own)]),
      })
      const buying = buy(seller)
      const find = async () => {
        const { body } = await send('GET', '/api/purchases?limit=1')
        const [latest] = z.array(z.looseObject({ purchaseId: text, url: text })).parse(body.purchases)
        return latest?.url === `${seller.origin}/sold` ? latest : undefined
      }
      await expect.poll(find, { interval: 20 }).toBeDefined()
      const found = z.looseObject({ purchaseId: text }).parse(await find())
      const body = request(found.purchaseId, 'canceled')
      const pressed = await Promise.all(
        Array.from({ length: 6 }, (_, at) =>
          at % 2 === 0 ? owner.send('POST', '/api/recourse', body) : send('POST', '/api/recourse', body),
        ),
      )
      await buying
      const ended = await untilStatus(pressed[0]?.body ?? {}, 'recovered')
      expect(ended).toMatchObject({ claimed: '0.001', recovered: '0.001' })
      await expect.poll(async () => (await readPurchase(found)).status).toMatch(/failed|undelivered/)
      const purchase = await readPurchase(found)
      expect(purchase).toMatchObject(
        isTaken ? { charged: '0.001', refunded: '0.001' } : { charged: '0', refunded: '0' },
      )
      await untilUnits(before + sent - (isTaken ? PRICE : 0n))
    }
  }, 120_000)

  it('needs the owner’s yes on what was delivered, and runs then', async () => {
    const seller = await newSeller({
      onPaid: async ({ take }) => {
        await take()
        return true
      },
      onAsked: (own) => own.send(PRICE),
    })
    const bought = await buy(seller)
    expect(bought).toMatchObject({ status: 'delivered' })
    const asked = await send('POST', '/api/recourse', request(bought.purchaseId, 'not_as_described'))
    expect(asked).toMatchObject({ status: 403, body: { code: 'approval_required' } })
    expect(seller.requests).toEqual([])
    const decided = await owner.send('POST', `/api/approvals/${asked.body.approvalId}`, {
      decision: 'approve',
    })
    expect(decided.body).toMatchObject({ status: 'approved', answer: { recourseId: expect.any(String) } })
    const opened = await open(bought, 'not_as_described')
    expect(await untilStatus(opened, 'recovered')).toMatchObject(recovered)
    expect(seller.requests).toEqual([bought.purchaseId])
  })

  it('takes back with the processor what was won and is lost then', async () => {
    const cards = z.looseObject({ cards: z.array(z.looseObject({ id: text })).min(1) })
    const cardId = cards.parse((await owner.send('GET', '/api/cards')).body).cards[0]?.id
    await owner.send('POST', '/sandbox/authorizations', { cardId, amount: '5', clear: true })
    const readCard = async () => {
      const { body } = await owner.send('GET', `/api/cards/${cardId}/transactions`)
      return z.array(z.looseObject({ id: text, refunded: text })).parse(body.transactions)[0]
    }
    const object = { kind: 'card_transaction', id: (await readCard())?.id }
    const opened = (await owner.send('POST', '/api/recourse', { object, reason: 'not_delivered' })).body
    const readOwn = async () => (await owner.send('GET', `/api/recourse/${opened.recourseId}`)).body
    expect(opened).toMatchObject({ status: 'open', route: 'card_dispute' })
    const play = (outcome: string) =>
      owner.send('POST', '/sandbox/recourse', { recourseId: opened.recourseId, outcome })
    expect((await play('won')).status).toBe(200)
    await expect.poll(readOwn).toMatchObject({ status: 'recovered', recovered: '5' })
    const ended = await readOwn()
    for (const outcome of ['lost', 'won', 'lost']) await play(outcome)
    await expect.poll(async () => (await readCard())?.refunded).toBe('0')
    expect(await readOwn()).toEqual(ended)
  })

  it('has a payout back once, whichever is faster, the recall or the bank', async () => {
    const recipient = async (accountNumber: string) => {
      const { body } = await owner.send('POST', '/api/banking/recipients', {
        ...{ currency: 'USD', name: 'Grace Hopper', country: 'US' },
        account: { routingNumber: '021000021', accountNumber },
      })
      return String(body.id)
    }
    const [waits, pays] = [await recipient('123450000'), await recipient('123456789')]
    for (const [recipientId, isDecided] of [
      [waits, true],
      [waits, true],
      [pays, false],
    ] as const) {
      const { body: payout } = await owner.send('POST', '/api/banking/payouts', { recipientId, amount: '10' })
      const object = { kind: 'payout', id: payout.id }
      const opening = owner.send('POST', '/api/recourse', { object, reason: 'wrong_amount' })
      const bank = async () =>
        isDecided
          ? requestJson(world.gateway().origin, 'POST', '/sandbox/payouts', {
              body: { payoutId: payout.id, outcome: 'paid' },
            })
          : undefined
      const [{ body: opened }] = await Promise.all([opening, bank()])
      const play = () =>
        owner.send('POST', '/sandbox/recourse', { recourseId: opened.recourseId, outcome: 'won' })
      const readOwn = async () => (await owner.send('GET', `/api/recourse/${opened.recourseId}`)).body
      await expect
        .poll(async () => {
          // Canceled, or returned if the bank was faster.
          await Promise.all([play(), bank(), play()])
          return (await readOwn()).status
        })
        .toBe('recovered')
      const { body: after } = await owner.send('GET', `/api/banking/payouts/${payout.id}`)
      expect(after.status).toMatch(/failed|returned/)
      const { body: activity } = await owner.send('GET', '/api/activity?kind=payout&limit=100')
      const entry = z
        .array(z.looseObject({ id: text, status: text }))
        .parse(activity.entries)
        .filter(({ id }) => id === payout.id)
      expect(entry).toHaveLength(1)
      const { body: portfolio } = await owner.send('GET', '/api/investing/portfolio')
      expect(portfolio.cash).toBe(portfolio.buyingPower)
      expect(await readOwn()).toMatchObject({ claimed: '10', recovered: '10' })
    }
  })

  it('expires where nothing, another asset or another’s address is refunded', async () => {
    const opened: Json[] = []
    for (const onAsked of [
      async () => {},
      (seller: RefundingSeller) => seller.send(PRICE, STRANGER),
      (seller: RefundingSeller) => seller.send(PRICE, undefined, 'EURC'),
    ])
      opened.push(await open(await buy(await newSeller({ onAsked }))))
    // A refund in the asset that was paid, to the purse that paid, but of somebody else.
    const other = await newSeller()
    opened.push(await open(await buy(other)))
    await (await newSeller()).send(PRICE, other.payer())
    world.pass(6 * DAY_S)
    for (const recourse of opened)
      expect(await read(recourse)).toMatchObject({ status: 'open', recovered: '0' })
    world.pass(DAY_S + 60)
    for (const recourse of opened)
      expect(await untilStatus(recourse, 'expired')).toMatchObject({
        recovered: '0',
        route: 'refund_request',
      })
  }, 120_000)
})
