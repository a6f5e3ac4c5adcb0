/** Any course of events against the reference in model.ts, on both engines: the same verdicts, the same books. */
import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import { needsApproval } from '../../../policies/approval.ts'
import { type BudgetPeriod, budgetPeriods, budgetRules } from '../../../policies/budget.ts'
import { type Policy, spendPolicy } from '../../../policies/policy.ts'
import { usdMicrosOf, usdOfMicros } from '../../../policies/usd.ts'
import { external } from '../../../src/books/ledger/accounts.ts'
import { balances } from '../../../src/books/ledger/balances.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { reserveSpend, reserveSpends, type SpendVerdict } from '../../../src/books/spending/reserve.ts'
import { createReserveQueue } from '../../../src/books/spending/reserve-queue.ts'
import { settleSpend } from '../../../src/books/spending/settle.ts'
import type { SpendRequest } from '../../../src/books/spending/spend-request.ts'
import { utcDay } from '../../../src/core/base/clock.ts'
import type { Database } from '../../../src/storage/database.ts'
import { onBothEngines } from '../../engines.ts'
import { type Ask, decide, fundsOf, type Model, usageNow } from './model.ts'
import { capAccount, deposit, noon, openAccount, openKey, place, spendOf, usageOf } from './scene.ts'

const CENT = 10_000n
const FUNDS = 120n * CENT

interface Real {
  readonly database: Database
  readonly accountId: string
  readonly keyIds: readonly string[]
}

type Command = fc.AsyncCommand<Model, Real, false>

const payees = ['a', 'b'].map((digit) => `0x${digit.repeat(40)}`)
const units = fc.bigInt({ min: 1n, max: 40n }).map((cents) => cents * CENT)

const asks: fc.Arbitrary<Ask> = fc.record({
  key: fc.oneof({ weight: 6, arbitrary: fc.nat({ max: 1 }) }, { weight: 1, arbitrary: fc.constant(null) }),
  units,
  isPriced: rarely(true, false),
  payee: fc.option(fc.constantFrom(...payees), { freq: 6 }),
  call: fc.option(
    fc.record({ key: fc.constantFrom('one', 'two', 'three'), fingerprint: rarely('same', 'other') }),
    { freq: 2 },
  ),
  isStale: rarely(false, true),
  isApproved: rarely(false, true),
})

function rarely<Value>(usual: Value, rare: Value) {
  return fc.oneof({ weight: 9, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constant(rare) })
}

/** A budget of a week or a month. @property max cents beyond that of the day. */
const longer = fc.record({
  max: fc.bigInt({ min: 0n, max: 60n }),
  maxCount: fc.option(fc.integer({ min: 1, max: 8 }), { nil: undefined }),
})

const policies = fc
  .record({
    max: fc.bigInt({ min: 1n, max: 150n }),
    maxCount: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
    week: fc.option(longer, { nil: undefined, freq: 2 }),
    month: fc.option(longer, { nil: undefined, freq: 2 }),
    newPayeeCooldownSec: fc.option(fc.constantFrom(3_600, 86_400), { nil: undefined, freq: 2 }),
    above: fc.option(fc.bigInt({ min: 1n, max: 40n }), { nil: undefined, freq: 2 }),
  })
  .map(({ max, maxCount, week, month, newPayeeCooldownSec, above }) =>
    spendPolicy.parse({
      perTransaction: { max: usdOfMicros(max * CENT) },
      dailyBudget: { max: usdOfMicros(max * CENT), maxCount },
      weeklyBudget: week && { ...week, max: usdOfMicros((max + week.max) * CENT) },
      monthlyBudget: month && { ...month, max: usdOfMicros((max + month.max) * CENT) },
      categories: { allow: ['transfer'] },
      counterparties: { newPayeeCooldownSec },
      approval: above === undefined ? undefined : { above: usdOfMicros(above * CENT) },
    }),
  )

function requestOf(model: Model, { accountId, keyIds }: Real, ask: Ask): SpendRequest {
  const key = ask.key === null ? undefined : model.keys[ask.key]
  const keyId = ask.key === null ? null : (keyIds[ask.key] ?? '')
  const usdMicros = ask.isPriced ? ask.units : null
  return spendOf({ accountId, keyId: null }, ask.units, {
    at: model.now,
    usdMicros,
    counterparty: ask.payee,
    idempotency: ask.call === null ? null : { principal: keyId ?? accountId, ...ask.call },
    isApproved: ask.isApproved,
    ...(key === undefined || keyId === null
      ? {}
      : {
          key: {
            id: keyId,
            policyVersion: key.version - (ask.isStale ? 1 : 0),
            limits: {
              dailyMaxMicros: usdMicrosOf(key.policy.dailyBudget.max),
              dailyMaxCount: key.policy.dailyBudget.maxCount ?? null,
              longer: budgetRules(key.policy).filter(({ period }) => period !== 'day'),
            },
          },
          cooldownSeconds: key.policy.counterparties?.newPayeeCooldownSec ?? null,
          needsApproval: !ask.isApproved && needsApproval(key.policy, usdMicros),
        }),
  })
}

/** Checks allowed spends against the budget and the cap, by the database's own counters. */
async function expectNoOverspending(
  model: Model,
  { database, keyIds }: Real,
  verdicts: readonly SpendVerdict[],
) {
  for (const [index, { policy }] of model.keys.entries()) {
    const usage = await usageOf(database, keyIds[index] ?? '', utcDay(model.now))
    const periods = usageNow(model, index)
    expect(usage).toEqual(periods.day)
    const isNew = verdicts.some(
      (verdict) =>
        verdict.verdict === 'allow' &&
        model.spends.some(({ decisionId, key }) => decisionId === verdict.decisionId && key === index),
    )
    if (!isNew) continue
    for (const { period, maxMicros, maxCount } of budgetRules(policy)) {
      if (maxMicros !== null) expect(periods[period].usedMicros <= maxMicros).toBe(true)
      if (maxCount !== null) expect(periods[period].count <= maxCount).toBe(true)
    }
    for (const period of budgetPeriods) {
      const cap = model.caps[period]
      if (cap !== null) expect(usageNow(model)[period].usedMicros <= cap).toBe(true)
    }
  }
}

const ways: Readonly<
  Record<string, (real: Real, requests: readonly SpendRequest[]) => Promise<readonly SpendVerdict[]>>
> = {
  'one by one': async ({ database }, requests) => {
    const verdicts = []
    for (const request of requests) verdicts.push(await reserveSpend(database, request))
    return verdicts
  },
  'as a batch': ({ database }, requests) => reserveSpends(database, requests),
  'at once': ({ database }, requests) => Promise.all(requests.map(createReserveQueue(database))),
}

const reserving = (way: string, wanted: readonly Ask[]): Command => ({
  check: () => true,
  run: async (model, real) => {
    const requests = wanted.map((ask) => requestOf(model, real, ask))
    const expected = wanted.map((ask, index) => decide(model, ask, requests[index]?.decisionId ?? ''))
    const verdicts = await (ways[way] ?? ways['one by one'])?.(real, requests)
    expect(verdicts).toEqual(expected)
    await expectNoOverspending(model, real, verdicts ?? [])
  },
  toString: () => `reserve ${way} ${fc.stringify(wanted)}`,
})

type End = 'settled' | 'released'

/** A job's work on a spend, in any state. */
async function resolve(model: Model, { database }: Real, index: number, end: End): Promise<void> {
  const spend = model.spends[index]
  const order = { decisionId: spend?.decisionId ?? 'dec_none', at: model.now }
  const due =
    spend === undefined ? 'not_reserved' : spend.status === 'reserved' ? end : `already_${spend.status}`
  const verdict =
    end === 'settled'
      ? await settleSpend(database, { ...order, destination: external(place) })
      : await releaseSpend(database, order)
  expect(verdict).toBe(due)
  if (spend?.status === 'reserved') spend.status = end
}

const resolving = (index: number, end: End): Command => ({
  check: () => true,
  run: (model, real) => resolve(model, real, index, end),
  toString: () => `${end} ${index}`,
})

/** The process restarts; a job handles every open spend, twice. */
const crashing = (end: End): Command => ({
  check: ({ spends }) => spends.length > 0,
  run: async (model, real) => {
    for (const round of [1, 2])
      for (const [index, { status }] of model.spends.entries())
        if (round === 2 || status === 'reserved') await resolve(model, real, index, end)
  },
  toString: () => `crash, then all open are ${end}`,
})

const changingPolicy = (index: number, policy: Policy): Command => ({
  check: () => true,
  run: async (model, { database, keyIds }) => {
    const key = model.keys[index]
    if (key === undefined) return
    key.policy = policy
    key.version += 1
    await database.kysely
      .updateTable('access_key')
      .set({ policy_version: key.version })
      .where('id', '=', keyIds[index] ?? '')
      .execute()
  },
  toString: () => `policy of ${index}: ${fc.stringify(policy)}`,
})

const changingCap = (period: BudgetPeriod, cap: bigint | null): Command => ({
  check: () => true,
  run: async (model, { database, accountId }) => {
    model.caps[period] = cap
    await capAccount(database, accountId, model.caps.day, model.caps)
  },
  toString: () => `cap of the ${period} ${cap}`,
})

const switching = (index: number): Command => ({
  check: () => true,
  run: async (model, { database, keyIds }) => {
    const key = model.keys[index]
    if (key === undefined) return
    key.isPaused = !key.isPaused
    await database.kysely
      .updateTable('access_key')
      .set({ status: key.isPaused ? 'paused' : 'active' })
      .where('id', '=', keyIds[index] ?? '')
      .execute()
  },
  toString: () => `pause or resume ${index}`,
})

const waiting = (minutes: number): Command => ({
  check: () => true,
  run: async (model) => {
    model.now = new Date(model.now.getTime() + minutes * 60_000)
  },
  toString: () => `wait ${minutes} minutes`,
})

const depositing = (more: bigint): Command => ({
  check: () => true,
  run: async (model, { database, accountId }) => {
    await deposit(database, accountId, more)
    model.deposited += more
  },
  toString: () => `deposit ${more}`,
})

const ends = fc.constantFrom<End>('settled', 'released')
const keys = fc.nat({ max: 1 })
const courses = fc.commands<Model, Real, false>(
  [
    fc.tuple(asks).map((wanted) => reserving('one by one', wanted)),
    fc.tuple(asks).map((wanted) => reserving('one by one', wanted)),
    fc
      .tuple(fc.constantFrom('as a batch', 'at once'), fc.array(asks, { maxLength: 6 }))
      .map(([way, wanted]) => reserving(way, wanted)),
    fc.tuple(fc.nat({ max: 12 }), ends).map(([index, end]) => resolving(index, end)),
    fc.tuple(keys, policies).map(([index, policy]) => changingPolicy(index, policy)),
    fc
      .tuple(fc.constantFrom(...budgetPeriods), fc.option(fc.bigInt({ min: 0n, max: 150n })))
      .map(([period, cents]) => changingCap(period, cents && cents * CENT)),
    keys.map(switching),
    fc.constantFrom(59, 60, 720, 1_441, 4_320).map(waiting),
    ends.map(crashing),
    units.map(depositing),
  ],
  { maxCommands: 30, size: 'max' },
)

/** Before ends of weeks, months, years with 53 weeks, and Februaries. */
const starts = fc.constantFrom(
  noon,
  new Date('2026-11-22T23:00:00.000Z'),
  new Date('2026-11-29T12:00:00.000Z'),
  new Date('2026-12-31T12:00:00.000Z'),
  new Date('2024-12-28T12:00:00.000Z'),
  new Date('2028-02-28T12:00:00.000Z'),
  new Date('2027-02-28T23:59:59.999Z'),
)

onBothEngines('any course of spending', (database) => {
  afterAll(async () => {
    expect(await trialBalance(database())).toMatchObject({ balanced: true, drifts: [] })
  })

  it('matches the reference', async () => {
    await fc.assert(
      fc.asyncProperty(starts, policies, policies, courses, async (start, one, two, course) => {
        const accountId = await openAccount(database(), FUNDS)
        const keyIds = [await openKey(database(), accountId), await openKey(database(), accountId)]
        const model: Model = {
          now: start,
          deposited: FUNDS,
          caps: { day: null, week: null, month: null },
          keys: [one, two].map((policy) => ({ policy, version: 1, isPaused: false })),
          spends: [],
          calls: new Map(),
          payees: new Map(),
        }
        await fc.asyncModelRun(() => ({ model, real: { database: database(), accountId, keyIds } }), course)

        const [balance] = await balances(database(), accountId)
        expect(balance?.available).toBe(fundsOf(model))
        const held = model.spends.filter(({ status }) => status === 'reserved')
        expect(balance?.held).toBe(held.reduce((total, { units: more }) => total + more, 0n))
        const open = await database()
          .kysely.selectFrom('reservation')
          .select('decision_id')
          .where('account_id', '=', accountId)
          .where('status', '=', 'reserved')
          .execute()
        expect(open.map(({ decision_id: id }) => id).sort()).toEqual(
          held.map(({ decisionId }) => decisionId).sort(),
        )
      }),
      { numRuns: Number(process.env.MODEL_RUNS ?? 80) },
    )
  }, 180_000)
})
