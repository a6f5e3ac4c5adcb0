/**
 * Orders against a model: for any course of buys, sells, cancellations and interruptions while the price moves, cash
 * and shares in the ledger equal the fills, and nothing is created or lost.
 */
import fc from 'fast-check'
import { beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { balances } from '../../../src/books/ledger/balances.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import type { Services } from '../../../src/kernel/context.ts'
import type { Broker } from '../../../src/providers/broker/port.ts'
import { readPositions } from '../../../src/rails/investing/positions.ts'
import { resumeOrder } from '../../../src/rails/investing/resume-order.ts'
import { findOrder } from '../../../src/rails/investing/store.ts'
import { settleOrders } from '../../../src/server/jobs/settle-orders.ts'
import order from '../../../tools/investing/order.ts'
import cancel from '../../../tools/investing/orders/cancel.ts'
import portfolio from '../../../tools/investing/portfolio.ts'
import { onBothEngines } from '../../engines.ts'
import type { SignedIn } from '../../people/identity/signed-in.ts'
import { expectEventsOfEffects } from '../../records/events/effects.ts'
import { movedClock, newInvestor, servicesWithMarket } from './scene.ts'

const quiet = new AbortController().signal
const CENT = 10n ** 16n

type Step =
  | { kind: 'buy' | 'sell'; cents: number; limitCents: number | null; isCutOff: boolean }
  | { kind: 'price'; cents: number }
  | { kind: 'wait'; seconds: number }
  | { kind: 'cancel'; which: number }

const cents = fc.integer({ min: 100, max: 60_000 })
const priceCents = fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 50, max: 50_000 }))
const trade = (kind: 'buy' | 'sell') =>
  fc.record({
    kind: fc.constant(kind),
    cents,
    limitCents: fc.option(priceCents),
    isCutOff: fc.boolean(),
  })
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: trade('buy') },
    { weight: 4, arbitrary: trade('sell') },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('price' as const), cents: priceCents }) },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('wait' as const), seconds: fc.integer({ min: 1, max: 50 }) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('cancel' as const), which: fc.nat({ max: 20 }) }),
    },
  ),
  { minLength: 3, maxLength: 14 },
)

onBothEngines('investing’s books', (database) => {
  const clock = movedClock()
  let price = 10_000n
  let isCutOff = false
  let services: Services
  beforeAll(async () => {
    const market = await servicesWithMarket(database(), { clock, feed: () => price * 10_000_000n })
    // The broker accepts the order, and its answer is lost.
    const broker: Broker = {
      ...market.broker,
      place: async (placed) => {
        const placement = await market.broker.place(placed)
        if (isCutOff) throw new Error('cut off')
        return placement
      },
    }
    services = { ...market, broker }
  })

  const run = async (investor: SignedIn, step: Step, placed: string[]): Promise<void> => {
    switch (step.kind) {
      case 'price':
        price = BigInt(step.cents)
        return
      case 'wait':
        clock.forward(step.seconds * 1_000)
        await settleOrders(services, quiet)
        return
      case 'cancel': {
        const id = placed[step.which % Math.max(1, placed.length)]
        if (id !== undefined) await investor.call(cancel, { id }, { at: clock() }).catch(expectRefusal)
        return
      }
      default: {
        isCutOff = step.isCutOff
        const limit =
          step.limitCents === null
            ? {}
            : {
                type: 'limit',
                limitPrice: `${Math.floor(step.limitCents / 100)}.${String(step.limitCents % 100).padStart(2, '0')}`,
              }
        const input = { symbol: 'VTI', side: step.kind, notional: `${step.cents / 100}`, ...limit }
        const answer = await investor.call(order, input, { at: clock() }).catch(expectRefusal)
        isCutOff = false
        if (answer !== undefined) placed.push(String(answer.body.id))
      }
    }
  }
  const expectRefusal = (error: unknown) => {
    expect(error).toMatchObject({
      code: expect.stringMatching(/^(insufficient_funds|conflict|order_rejected)$/),
    })
    return undefined
  }

  /** Compares the orders with the ledger. */
  const check = async (investor: SignedIn) => {
    const { accountId } = investor
    const orders = await database()
      .kysely.selectFrom('investing_order')
      .selectAll()
      .where('account_id', '=', accountId)
      .execute()
    let [cash, shares] = [50_000n, 2_500_000_000n]
    let heldCash = 0n
    for (const row of orders) {
      const open = ['new', 'accepted', 'partially_filled'].includes(row.status)
      if (row.side === 'buy') {
        expect(row.filled_cash <= row.notional).toBe(true)
        if (open) heldCash += row.notional - row.filled_cash
        cash -= row.filled_cash
        shares += row.filled_qty
      } else {
        expect(row.filled_qty <= (row.qty ?? 0n)).toBe(true)
        cash += row.filled_cash
        shares -= row.filled_qty
      }
      // Each fill loses at most a cent to rounding, and never gains one.
      const book = await database()
        .kysely.selectFrom('sandbox_order')
        .select('filled_value')
        .where('id', '=', row.id)
        .executeTakeFirst()
      const value = BigInt(book?.filled_value ?? '0')
      if (!open && row.side === 'buy') expect(row.filled_cash * CENT - value < CENT).toBe(true)
      if (!open && row.side === 'sell') expect(value - row.filled_cash * CENT < CENT).toBe(true)
    }
    const [bank] = (await balances(database(), accountId)).filter(({ place }) => place === 'bank')
    expect([bank?.available, bank?.held]).toEqual([cash - heldCash, heldCash])
    const [position] = await readPositions(database(), accountId, 'VTI')
    expect(position?.qty).toBe(shares)
    expect(cash >= 0n && shares >= 0n && (position?.cost ?? 0n) >= 0n).toBe(true)
    return { cash }
  }

  it('equal the fills', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (input) => {
        price = 10_000n
        clock.forward(60_000)
        const investor = await newInvestor(services)
        const placed: string[] = []
        for (const step of input) await run(investor, step, placed)
        // Open orders expire with their session, or are booked by the next read.
        for (const id of placed) {
          const left = await findOrder(database(), { accountId: investor.accountId, id })
          if (left !== undefined) await resumeOrder(services, left)
        }
        const { cash } = await check(investor)
        const { body } = await investor.call(portfolio, { timeframe: '1D' }, { at: clock() })
        const shown = z
          .object({
            cash: z.string(),
            equity: z.string(),
            holdings: z.array(z.object({ marketValue: z.string() })),
          })
          .parse(body)
        const inCents = (text: string) => BigInt(Math.round(Number(text) * 100))
        expect(inCents(shown.cash)).toBe(cash)
        expect(inCents(shown.equity)).toBe(
          shown.holdings.reduce((sum, { marketValue }) => sum + inCents(marketValue), cash),
        )
      }),
      {
        numRuns: 40,
        // An impossible price is an alarm, also from a broker that reports more members than expected.
        examples: [
          [
            [
              { kind: 'buy', cents: 100, limitCents: 1, isCutOff: false },
              { kind: 'wait', seconds: 1 },
              { kind: 'price', cents: 1 },
            ],
          ],
        ],
      },
    )
    expect(await trialBalance(database())).toMatchObject({ balanced: true })
    await expectEventsOfEffects(database())
  })
})
