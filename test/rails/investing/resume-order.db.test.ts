import { beforeAll, beforeEach, expect, it } from 'vitest'
import { raiseAlarm } from '../../../src/books/alarms/alarms.ts'
import { available, external } from '../../../src/books/ledger/accounts.ts'
import { post } from '../../../src/books/ledger/post.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import type { Services } from '../../../src/kernel/context.ts'
import type { Broker, BrokerOrder } from '../../../src/providers/broker/port.ts'
import { settleOrders } from '../../../src/server/jobs/settle-orders.ts'
import order from '../../../tools/investing/order.ts'
import cancel from '../../../tools/investing/orders/cancel.ts'
import list from '../../../tools/investing/orders/list.ts'
import portfolio from '../../../tools/investing/portfolio.ts'
import { onBothEngines } from '../../engines.ts'
import { type SignedIn, signInAgain } from '../../people/identity/signed-in.ts'
import { movedClock, newInvestor, servicesWithMarket } from './scene.ts'

const quiet = new AbortController().signal
const buy = { symbol: 'VTI', side: 'buy', notional: '100' }

onBothEngines('open orders', (database) => {
  const clock = movedClock()
  let price = 100n
  let line: 'up' | 'lost answers' | 'down' = 'up'
  const placed: BrokerOrder[] = []
  /** Runs between the broker's acceptance and its answer. */
  let meanwhile = async (_orderId: string) => {}
  let services: Services
  let investor: SignedIn
  const down = () => new Failure('provider_unavailable', 'The broker gave no usable answer.')
  beforeAll(async () => {
    const market = await servicesWithMarket(database(), { clock, feed: () => price * 1_000_000_000n })
    const { broker } = market
    const shaky: Broker = {
      ...broker,
      place: async (changes) => {
        if (line === 'down') throw down()
        placed.push(changes)
        const placement = await broker.place(changes)
        await meanwhile(changes.id)
        if (line === 'lost answers') throw down()
        return placement
      },
      find: async (id) => {
        if (line === 'down') throw down()
        return broker.find(id)
      },
      cancel: async (id) => {
        if (line === 'down') throw down()
        return broker.cancel(id)
      },
    }
    services = { ...market, broker: shaky }
  })
  beforeEach(async () => {
    line = 'up'
    price = 100n
    placed.length = 0
    meanwhile = async () => {}
    clock.forward(3_600_000)
    investor = await newInvestor(services)
  })
  const again = async () => {
    investor = await signInAgain(services, investor.accountId, clock())
  }
  const place = (changes: object = {}) => investor.call(order, { ...buy, ...changes }, { at: clock() })
  const first = async () => {
    await again()
    const { orders } = (await investor.call(list, {}, { at: clock() })).body as {
      orders: { status: string }[]
    }
    return orders[0]
  }
  const cash = async () => {
    const { cash: all, buyingPower } = (await investor.call(portfolio, {}, { at: clock() })).body
    return [all, buyingPower]
  }
  const later = async (milliseconds = 5_000) => {
    clock.forward(milliseconds)
    await settleOrders(services, quiet)
  }

  it('orders with a lost answer stay held, and are booked once the broker reports them', async () => {
    line = 'lost answers'
    expect((await place()).body).toMatchObject({ status: 'accepted', filledQty: '0.000000000' })
    expect(await cash()).toEqual(['500', '400'])
    line = 'up'
    await later()
    expect(await first()).toMatchObject({ status: 'filled' })
    expect(await cash()).toEqual(['400', '400'])
    expect(placed).toHaveLength(1)
  })

  it('orders that a job booked before the answer came are booked once', async () => {
    meanwhile = () => later()
    expect((await place()).body).toMatchObject({ status: 'filled' })
    expect(await cash()).toEqual(['400', '400'])
    expect(await trialBalance(database())).toMatchObject({ balanced: true })
  })

  it('orders with an alarm from before the answer came are not booked', async () => {
    meanwhile = async (objectId) => {
      const alarm = { domain: 'investing', objectId, reason: 'quantity_beyond_order', reported: {} } as const
      await raiseAlarm(services, { ...alarm, at: clock() })
    }
    expect((await place()).body).toMatchObject({ status: 'accepted', filledQty: '0.000000000' })
    expect(await cash()).toEqual(['500', '400'])
  })

  it('orders that never reached the broker are placed again with the same id', async () => {
    line = 'down'
    expect((await place()).body).toMatchObject({ status: 'accepted' })
    await later()
    expect(await cash()).toEqual(['500', '400'])
    line = 'up'
    await later()
    expect(await first()).toMatchObject({ status: 'filled' })
    expect(placed).toHaveLength(1)
  })

  it('are abandoned only once the broker denies having them, long after', async () => {
    line = 'down'
    await place()
    await later(6 * 60_000)
    expect(await first()).toMatchObject({ status: 'accepted' })
    line = 'up'
    await later()
    expect(await first()).toMatchObject({ status: 'rejected', rejectReason: 'broker_unreachable' })
    expect(await cash()).toEqual(['500', '500'])
    expect(placed).toEqual([])
  })

  it('orders that are canceled while the broker is unavailable are canceled when it is back', async () => {
    const { body } = await place({ type: 'limit', limitPrice: '50' })
    line = 'down'
    await expect(investor.call(cancel, { id: body.id }, { at: clock() })).rejects.toMatchObject({
      code: 'provider_unavailable',
    })
    expect(await first()).toMatchObject({ status: 'accepted' })
    line = 'up'
    await later()
    expect(await first()).toMatchObject({ status: 'canceled' })
    expect(await cash()).toEqual(['500', '500'])
  })

  it('orders that fill in parts are booked in parts, and cancellation keeps the filled part', async () => {
    // The market fills 10,000 USD a second.
    const purse = available(investor.accountId, 'bank')
    const money = { asset: 'USD' as const, units: 10_000_000n }
    await post(database(), {
      id: services.newId('tx', clock()),
      kind: 'deposit',
      reference: 'test',
      at: clock(),
      postings: [{ source: external('bank'), destination: purse, money }],
    })
    const { body } = await place({ notional: '50000', type: 'limit', limitPrice: '100' })
    expect(body).toMatchObject({ status: 'partially_filled', filledQty: '100.000000000' })
    expect(await cash()).toEqual(['90500', '50500'])
    price = 101n
    await later()
    price = 100n
    clock.forward(1_000)
    await settleOrders(services, quiet)
    const canceled = await investor.call(cancel, { id: body.id }, { at: clock() })
    expect(canceled.body).toMatchObject({ status: 'canceled', filledAvgPrice: '100.00' })
    const [all, free] = await cash()
    expect(all).toBe(free)
    expect(Number(all)).toBe(100_500 - Number(canceled.body.filledQty) * 100)
  })

  it('never result from a reservation whose process died before it placed one', async () => {
    const verdict = await reserveSpend(database(), {
      decisionId: services.newId('dec', clock()),
      accountId: investor.accountId,
      key: null,
      policyHash: null,
      operation: 'investing.order',
      facts: {},
      violations: [],
      money: { asset: 'USD', units: 10_000n },
      usdMicros: 100_000_000n,
      counterparty: null,
      cooldownSeconds: null,
      needsApproval: false,
      isApproved: false,
      place: 'bank',
      idempotency: null,
      at: clock(),
    })
    expect(verdict).toMatchObject({ verdict: 'allow' })
    await later(5_000)
    expect(await cash()).toEqual(['500', '400'])
    await later(6_000)
    expect(await cash()).toEqual(['500', '500'])
  })

  /** Sends an order through a process that ends once the database has reserved it. */
  const placeAndDie = async (idempotencyKey?: string) => {
    const reserve: Services['reserve'] = async (request) => {
      await services.reserve(request)
      throw new Error('the process ended')
    }
    const owner = await signInAgain({ ...services, reserve }, investor.accountId, clock())
    await expect(
      owner.call(order, buy, { at: clock(), ...(idempotencyKey === undefined ? {} : { idempotencyKey }) }),
    ).rejects.toThrow('the process ended')
  }

  it('orders that can be repeated are placed once, although their process died with the hold', async () => {
    await placeAndDie('a-key')
    const repeat = async () => {
      await again()
      return investor.call(order, buy, { at: clock(), idempotencyKey: 'a-key' })
    }
    expect(await repeat()).toMatchObject({ replayed: true, body: { status: 'accepted' } })
    await later()
    expect(await repeat()).toMatchObject({ replayed: true, body: { status: 'filled' } })
    expect(placed).toHaveLength(1)
    expect(await cash()).toEqual(['400', '400'])
  })

  it('orders that cannot be repeated are never placed when their process died with the hold', async () => {
    await placeAndDie()
    await later(11_000)
    await again()
    expect(placed).toEqual([])
    expect(await cash()).toEqual(['500', '500'])
  })

  it('orders of many people at once are booked once each', { timeout: 60_000 }, async () => {
    const people = await Promise.all(Array.from({ length: 8 }, () => newInvestor(services)))
    const outcomes = await Promise.all(
      people.flatMap((person, at) =>
        ['10', '20.01', '30'].map((notional, index) =>
          person.call(
            order,
            { symbol: 'VTI', side: index === 1 && at % 2 === 0 ? 'sell' : 'buy', notional },
            { at: clock(), idempotencyKey: `${at}.${index}` },
          ),
        ),
      ),
    )
    for (const { body } of outcomes) expect(body).toMatchObject({ status: 'filled' })
    expect(new Set(placed.map(({ id }) => id)).size).toBe(24)
    for (const [at, person] of people.entries()) {
      const { cash: all, buyingPower } = (await person.call(portfolio, {}, { at: clock() })).body
      expect([all, buyingPower]).toEqual(at % 2 === 0 ? ['480.01', '480.01'] : ['439.99', '439.99'])
    }
    expect(await trialBalance(database())).toMatchObject({ balanced: true })
  })

  it('orders of one account leave sound books under concurrent orders', { timeout: 60_000 }, async () => {
    const changes = Array.from({ length: 24 }, (_, at) => ({
      symbol: ['VTI', 'AAPL', 'O'][at % 3],
      side: at % 2 === 0 ? 'buy' : 'sell',
      notional: String(5 + at),
    }))
    const outcomes = await Promise.allSettled([
      ...changes.map((each) => place(each)),
      ...[1, 2, 3].map(() => settleOrders(services, quiet)),
    ])
    const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
    for (const reason of refused) expect(reason).toMatchObject({ code: 'insufficient_funds' })
    await later()
    const [all, free] = await cash()
    expect(all).toBe(free)
    expect(await trialBalance(database())).toMatchObject({ balanced: true })
  })
})
