import { beforeAll, beforeEach, expect, it } from 'vitest'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import type { Services } from '../../../src/kernel/context.ts'
import type { BrokerageAccounts } from '../../../src/providers/broker/accounts.ts'
import type { Feed } from '../../../src/providers/broker/sandbox-feed.ts'
import { settleOrders } from '../../../src/server/jobs/settle-orders.ts'
import order from '../../../tools/investing/order.ts'
import cancel from '../../../tools/investing/orders/cancel.ts'
import list from '../../../tools/investing/orders/list.ts'
import portfolio from '../../../tools/investing/portfolio.ts'
import { onBothEngines } from '../../engines.ts'
import { type SignedIn, signInAgain } from '../../people/identity/signed-in.ts'
import { movedClock, newInvestor, servicesWithMarket } from '../../rails/investing/scene.ts'

const dollars = (price: number) => BigInt(Math.round(price * 100)) * 10_000_000n
const quiet = new AbortController().signal

/** A broker's accounts that must not be asked. */
const refuse = () => Promise.reject(new Error('the broker was asked'))
const closedAccounts: BrokerageAccounts = {
  open: refuse,
  read: refuse,
  transfer: refuse,
  readTransfer: refuse,
  withdrawableCash: refuse,
  positions: refuse,
  activities: refuse,
}

onBothEngines('orders', (database) => {
  const clock = movedClock()
  let price = 100
  const feed: Feed = () => dollars(price)
  let services: Services
  let investor: SignedIn
  beforeAll(async () => {
    services = await servicesWithMarket(database(), { clock, feed })
  })
  beforeEach(async () => {
    price = 100
    clock.forward(60_000)
    investor = await newInvestor(services)
  })
  const place = (changes: object, how: { idempotencyKey?: string } = {}) =>
    investor.call(order, { symbol: 'VTI', side: 'buy', notional: '10', ...changes }, { at: clock(), ...how })
  const show = async () => (await investor.call(portfolio, { timeframe: '1D' }, { at: clock() })).body
  const later = async (milliseconds = 5_000) => {
    clock.forward(milliseconds)
    await settleOrders(services, quiet)
  }
  const readHeld = async () => {
    const { holdings } = (await show()) as { holdings: { symbol: string }[] }
    return holdings.find(({ symbol }) => symbol === 'VTI')
  }
  const orders = async (changes = {}) => {
    const { body } = await investor.call(list, changes, { at: clock() })
    return body.orders as Record<string, unknown>[]
  }

  it('buys at the market at once, for at most the requested amount', async () => {
    price = 30
    const { body } = await place({ notional: 10 })
    expect(body).toEqual({
      id: expect.stringMatching(/^ord_/),
      clientOrderId: null,
      symbol: 'VTI',
      side: 'buy',
      type: 'market',
      notional: '10',
      qty: null,
      sizedAt: null,
      status: 'filled',
      filledQty: '0.333333333',
      filledAvgPrice: '30.00',
      limitPrice: null,
      rejectReason: null,
      submittedAt: clock().toISOString(),
      filledAt: clock().toISOString(),
      next: null,
    })
    expect(await show()).toMatchObject({ cash: '490', buyingPower: '490' })
  })

  it('is refused without an account at a broker that keeps them, and holds nothing', async () => {
    const { broker } = services
    services = { ...services, broker: { ...broker, accounts: closedAccounts } }
    investor = await signInAgain(services, investor.accountId)
    await expect(place({})).rejects.toMatchObject({
      code: 'order_rejected',
      members: { reason: 'no_brokerage_account' },
    })
    services = { ...services, broker }
    investor = await signInAgain(services, investor.accountId)
    expect(await show()).toMatchObject({ cash: '500', buyingPower: '500' })
  })

  it('sells a holding for cash', async () => {
    const { holdings } = (await show()) as { holdings: { symbol: string; qty: string }[] }
    expect(holdings.find(({ symbol }) => symbol === 'VTI')?.qty).toBe('2.500000000')
    const { body } = await place({ side: 'sell', notional: '50' })
    expect(body).toMatchObject({ status: 'filled', filledQty: '0.500000000', filledAvgPrice: '100.00' })
    expect(await show()).toMatchObject({
      cash: '550',
      equity: '1000',
      holdings: expect.arrayContaining([
        expect.objectContaining({
          symbol: 'VTI',
          qty: '2.000000000',
          costBasis: '200',
          avgEntryPrice: '100.00',
        }),
      ]),
    })
  })

  it('is sized by a quantity in place of an amount', async () => {
    const byQuantity = (changes: object) => place({ notional: undefined, ...changes })
    expect((await byQuantity({ side: 'sell', qty: '1.25' })).body).toMatchObject({
      status: 'filled',
      notional: '125',
      qty: '1.250000000',
      filledQty: '1.250000000',
      sizedAt: '100.00',
    })
    price = 90
    const limited = { type: 'limit', limitPrice: '100' }
    expect((await byQuantity({ qty: 2, ...limited })).body).toMatchObject({
      status: 'filled',
      notional: '200',
      filledQty: '2.000000000',
      filledAvgPrice: '90.00',
      sizedAt: '100.00',
    })
    expect(await show()).toMatchObject({ cash: '445', buyingPower: '445' })
    expect((await byQuantity({ qty: '0.5' })).body).toMatchObject({
      notional: '45',
      qty: null,
      filledQty: '0.500000000',
    })
    await expect(byQuantity({ side: 'sell', qty: '100' })).rejects.toMatchObject({
      code: 'insufficient_funds',
      members: { asset: 'VTI', chain: null, elsewhere: [] },
    })
    for (const wrong of [{ qty: '1.0000000001' }, {}, { qty: '1', notional: '1' }])
      await expect(byQuantity(wrong)).rejects.toMatchObject({ code: 'invalid_request' })
    expect(await trialBalance(database())).toMatchObject({ balanced: true })
  })

  it('says at which price the shares of a limit sell are counted', async () => {
    const asked = { side: 'sell', type: 'limit', notional: '100' }
    expect((await place({ ...asked, limitPrice: '125' })).body).toMatchObject({
      qty: '0.800000000',
      sizedAt: '125.00',
    })
    expect((await place({ ...asked, limitPrice: '80' })).body).toMatchObject({
      qty: '1.000000000',
      sizedAt: '100.00',
    })
  })

  it('never sells more than the holding under concurrent sells', async () => {
    const sells = await Promise.allSettled(
      Array.from({ length: 8 }, () => place({ side: 'sell', notional: '100' })),
    )
    const refusals = sells.flatMap((sell) => (sell.status === 'rejected' ? [sell.reason] : []))
    expect(refusals).toHaveLength(6)
    for (const refusal of refusals)
      expect(refusal).toMatchObject({
        code: 'insufficient_funds',
        message: expect.stringMatching(/^The portfolio has \S+ VTI available; 1 needed\.$/),
      })
    expect(await show()).toMatchObject({ cash: '700', equity: '1000' })
  })

  it('does not spend cash twice, and names the cash available for orders', async () => {
    const buys = await Promise.allSettled(Array.from({ length: 8 }, () => place({ notional: '200' })))
    const refusals = buys.flatMap((buy) => (buy.status === 'rejected' ? [buy.reason] : []))
    expect(refusals).toHaveLength(6)
    expect(refusals[0]).toMatchObject({
      code: 'insufficient_funds',
      members: { hint: expect.stringContaining('USD cash') },
    })
    expect(await show()).toMatchObject({ cash: '100' })
  })

  it('sells at a limit below the market for the requested amount, and at most the holding', async () => {
    const low = { side: 'sell', type: 'limit', limitPrice: '0.10' }
    const { body } = await place({ ...low, notional: '100' })
    expect(body).toMatchObject({ status: 'filled', filledQty: '1.000000000', filledAvgPrice: '100.00' })
    expect((await place({ ...low, notional: '150' })).body).toMatchObject({ filledQty: '1.500000000' })
    expect(await show()).toMatchObject({ cash: '750', equity: '1000' })
  })

  it('sells all shares of a limit order above the market for their proceeds', async () => {
    const { body } = await place({ side: 'sell', type: 'limit', limitPrice: '120', notional: '300' })
    expect(body).toMatchObject({ status: 'accepted' })
    await expect(place({ side: 'sell', notional: '1' })).rejects.toMatchObject({ code: 'insufficient_funds' })
    price = 121
    await later()
    expect(await orders()).toMatchObject([{ status: 'filled', filledQty: '2.500000000' }])
    expect(await show()).toMatchObject({ cash: '802.5' })
    expect(await readHeld()).toBeUndefined()
  })

  it('sells the rest of a holding, however small its value', async () => {
    price = 33.33
    // 83.325 is displayed as 83.32; nothing below a cent remains.
    expect((await place({ side: 'sell', notional: '83.32' })).body).toMatchObject({
      filledQty: '2.500000000',
    })
    expect(await readHeld()).toBeUndefined()
    await place({ notional: '1.00' })
    price = 13
    const { body } = await investor.call(portfolio, { timeframe: '1D' }, { at: clock() })
    expect(body.holdings).toContainEqual(expect.objectContaining({ symbol: 'VTI', marketValue: '0.39' }))
    await expect(place({ side: 'sell', notional: '0.38' })).rejects.toMatchObject({
      code: 'order_rejected',
      members: { reason: 'notional_too_small', hint: expect.stringContaining('sells all of it') },
    })
    await expect(place({ side: 'sell', notional: '1.01' })).rejects.toMatchObject({
      code: 'insufficient_funds',
    })
    const closed = await place({ side: 'sell', notional: '0.40' })
    expect(closed.body).toMatchObject({ status: 'filled', filledQty: '0.030003000' })
    expect(await readHeld()).toBeUndefined()
    await expect(place({ side: 'sell', notional: '0.40' })).rejects.toMatchObject({
      members: { reason: 'notional_too_small' },
    })
  })

  it('keeps a limit order open with its cash held, and fills it when the price crosses', async () => {
    const { body } = await place({ type: 'limit', limitPrice: '95', notional: '190' })
    expect(body).toMatchObject({ status: 'accepted', limitPrice: '95.00', filledQty: '0.000000000' })
    expect(await show()).toMatchObject({ cash: '500', buyingPower: '310', equity: '1000' })
    await later()
    expect(await orders({ status: 'open' })).toMatchObject([{ id: body.id, status: 'accepted' }])
    price = 94
    await later()
    expect(await orders()).toMatchObject([{ id: body.id, status: 'filled', filledAvgPrice: '94.00' }])
    expect(await orders({ status: 'open' })).toEqual([])
    // 190 buys 2.021276595 shares at 94, which cost at most 190.
    expect(await show()).toMatchObject({ cash: '310', buyingPower: '310' })
  })

  it('uses the last quote as the default limit', async () => {
    expect((await place({ type: 'limit' })).body).toMatchObject({ limitPrice: '100.00', status: 'filled' })
  })

  it('cancels an open order and releases its holds', async () => {
    const { body } = await place({ type: 'limit', limitPrice: '50', notional: '100' })
    const canceled = await investor.call(cancel, { id: body.id }, { at: clock() })
    expect(canceled.body).toMatchObject({ id: body.id, status: 'canceled', filledQty: '0.000000000' })
    expect((await investor.call(cancel, { id: body.id }, { at: clock() })).body).toEqual(canceled.body)
    expect(await show()).toMatchObject({ cash: '500', buyingPower: '500' })
    const filled = await place({})
    await expect(investor.call(cancel, { id: filled.body.id }, { at: clock() })).rejects.toMatchObject({
      code: 'conflict',
      members: { reason: 'filled' },
    })
    const other = await newInvestor(services)
    await expect(other.call(cancel, { id: body.id }, { at: clock() })).rejects.toMatchObject({
      code: 'not_found',
    })
  })

  it('expires with its session, and a sell releases its shares', async () => {
    const { body } = await place({ side: 'sell', type: 'limit', limitPrice: '200', notional: '200' })
    await expect(place({ side: 'sell', notional: '160' })).rejects.toMatchObject({
      code: 'insufficient_funds',
    })
    await later(24 * 3_600_000)
    expect(
      await database()
        .kysely.selectFrom('investing_order')
        .select('status')
        .where('id', '=', String(body.id))
        .executeTakeFirst(),
    ).toEqual({ status: 'expired' })
  })

  it.each([
    ['an unknown symbol', { symbol: 'NOPE' }, 'unknown_symbol'],
    ['less than a dollar', { notional: '0.99' }, 'notional_too_small'],
    ['more than a million', { notional: '1000000.01' }, 'notional_too_large'],
  ])('rejects %s before anything is held', async (_name, changes, reason) => {
    await expect(place(changes)).rejects.toMatchObject({ code: 'order_rejected', members: { reason } })
    expect(await show()).toMatchObject({ buyingPower: '500' })
    expect(await orders()).toEqual([])
  })

  it.each([
    ['a tenth of a cent', { notional: '10.001' }],
    ['a limit on a market order', { limitPrice: '10' }],
    ['a limit below a cent', { type: 'limit', limitPrice: '10.001' }],
    ['a limit beyond all prices', { type: 'limit', limitPrice: '999999999999' }],
    ['a limit below the minimum', { type: 'limit', limitPrice: '0.0001' }],
    ['a sentence for a symbol', { symbol: 'buy all' }],
    ['an unknown side', { side: 'short' }],
    ['an empty client order id', { clientOrderId: '' }],
  ])('rejects %s', async (_name, changes) => {
    await expect(place(changes)).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it('accepts the largest and smallest valid amounts', async () => {
    const largest = { notional: '1000000', type: 'limit', limitPrice: '0.01' }
    for (const side of ['buy', 'sell'])
      await expect(place({ ...largest, side })).rejects.toMatchObject({ code: 'insufficient_funds' })
    expect((await place({ notional: '1.00', type: 'limit', limitPrice: '1000000.00' })).body).toMatchObject({
      status: 'filled',
    })
  })

  it('is one order per client order id under concurrent calls', async () => {
    const twins = await Promise.all(Array.from({ length: 5 }, () => place({ clientOrderId: 'rent' })))
    expect(new Set(twins.map(({ body }) => body.id)).size).toBe(1)
    expect(await orders()).toHaveLength(1)
    expect(await show()).toMatchObject({ cash: '490', buyingPower: '490' })
    expect(await place({ clientOrderId: 'rent' })).toMatchObject({
      replayed: true,
      body: { id: twins[0]?.body.id, status: 'filled' },
    })
    await expect(place({ clientOrderId: 'rent', notional: '11' })).rejects.toMatchObject({ code: 'conflict' })
    // Another account has its own order ids.
    const other = await newInvestor(services)
    const own = await other.call(
      order,
      { symbol: 'VTI', side: 'buy', notional: '10', clientOrderId: 'rent' },
      { at: clock() },
    )
    expect(own.body.id).not.toBe(twins[0]?.body.id)
  })

  it('is one order per idempotency key, and returns its current state', async () => {
    const first = await place({ type: 'limit', limitPrice: '90', notional: '90' }, { idempotencyKey: 'k' })
    price = 80
    await later()
    const again = await place({ type: 'limit', limitPrice: '90', notional: '90' }, { idempotencyKey: 'k' })
    expect(again).toMatchObject({ replayed: true, body: { id: first.body.id, status: 'filled' } })
    await expect(place({ notional: '11' }, { idempotencyKey: 'k' })).rejects.toMatchObject({
      code: 'idempotency_key_reused',
    })
  })

  it('leaves balanced books', async () => {
    expect(await trialBalance(database())).toMatchObject({ balanced: true })
  })
})
