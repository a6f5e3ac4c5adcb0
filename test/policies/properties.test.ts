import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { needsApproval } from '../../policies/approval.ts'
import {
  budgetViolations,
  cooldownViolation,
  ownerViolations,
  type PeriodUsage,
} from '../../policies/budget.ts'
import { evaluate } from '../../policies/evaluate.ts'
import { loosenings } from '../../policies/loosening.ts'
import {
  type Policy,
  policyAssets,
  policyChains,
  spendCategories,
  spendPolicy,
} from '../../policies/policy.ts'
import type { SpendFacts } from '../../policies/spend.ts'
import { formatUsd } from '../../policies/usd.ts'

const payees = ['1', '2', '3', '4'].map((digit) => `0x${digit.repeat(40)}`)
const moments = ['2026-01-01T00:00:00Z', '2026-06-01T00:00:00Z', '2026-12-01T00:00:00Z'] as const
const cents = fc.bigInt({ min: 1n, max: 10_000n })
const usd = cents.map((count) => formatUsd(count * 10_000n))

const codes = ['5411', '5812', '7995'] as const
const tickers = ['VTI', 'TSLA', 'BRK.B'] as const
const clock = fc
  .integer({ min: 0, max: 24 * 60 - 1 })
  .map((minute) => new Date(minute * 60_000).toISOString().slice(11, 16))
const window = fc.record({
  days: fc.subarray([...(['mon', 'wed', 'sat'] as const)], { minLength: 1 }),
  start: clock,
  end: clock,
  tz: fc.constantFrom('UTC', 'Europe/Berlin', 'Asia/Kolkata'),
})

const budget = fc.record({ max: usd, maxCount: fc.integer({ min: 1, max: 5 }) }, { requiredKeys: ['max'] })

const policies = fc
  .record(
    {
      perTransaction: fc.record({ max: usd }),
      dailyBudget: budget,
      weeklyBudget: budget,
      monthlyBudget: budget,
      categories: fc.record({ allow: fc.subarray([...spendCategories]) }),
      counterparties: fc.record(
        {
          allow: fc.subarray(payees),
          deny: fc.subarray(payees),
          newPayeeCooldownSec: fc.integer({ min: 1, max: 2_592_000 }),
        },
        { requiredKeys: [] },
      ),
      approval: fc.record(
        { above: usd, ttlSec: fc.integer({ min: 60, max: 604_800 }) },
        { requiredKeys: ['above'] },
      ),
      assets: fc.subarray([...policyAssets]),
      chains: fc.subarray([...policyChains]),
      mcc: fc.record({ allow: fc.subarray([...codes]), deny: fc.subarray([...codes]) }, { requiredKeys: [] }),
      symbols: fc.record(
        { allow: fc.subarray([...tickers]), deny: fc.subarray([...tickers]) },
        { requiredKeys: [] },
      ),
      timeWindows: fc.array(window, { maxLength: 3 }),
      notBefore: fc.constantFrom(...moments),
      expiresAt: fc.constantFrom(...moments),
    },
    { requiredKeys: ['perTransaction', 'dailyBudget', 'categories'] },
  )
  .map((document) => spendPolicy.safeParse(document).data)
  .filter((policy) => policy !== undefined)

const spends: fc.Arbitrary<SpendFacts> = fc.record({
  category: fc.constantFrom(...spendCategories),
  asset: fc.oneof(fc.constantFrom<string>(...policyAssets), fc.string()),
  usdMicros: fc.option(fc.bigInt({ min: 0n, max: 120_000_000n })),
  chain: fc.option(fc.oneof(fc.constantFrom<string>(...policyChains), fc.string())),
  counterparty: fc.option(fc.oneof(fc.constantFrom(...payees), fc.string())),
  mcc: fc.option(fc.oneof(fc.constantFrom(...codes), fc.string())),
  symbol: fc.option(fc.oneof(fc.constantFrom(...tickers), fc.string())),
})

const used = fc.record({
  usedMicros: fc.bigInt({ min: 0n, max: 120_000_000n }),
  count: fc.integer({ min: 0, max: 6 }),
})
const usages = fc.record({ day: used, week: used, month: used, life: used })
/** Time of the key's first request for a payee; null for now. */
const sightings = fc.option(
  fc.date({ min: new Date('2025-06-01'), max: new Date('2027-06-01'), noInvalidDate: true }),
)
const times = fc.date({ min: new Date('2025-06-01'), max: new Date('2027-06-01'), noInvalidDate: false })

/** Every violated rule of a policy, and the approval requirement. */
function judge(policy: Policy, spend: SpendFacts, usage: PeriodUsage, firstSeenAt: Date | null, now: Date) {
  const violations = [
    ...evaluate(policy, spend, now),
    ...budgetViolations(policy, spend.usdMicros, usage, now),
    ...[cooldownViolation(policy, spend.counterparty, firstSeenAt, now) ?? []].flat(),
  ]
  return { rules: violations.map(({ rule }) => rule), mustAsk: needsApproval(policy, spend.usdMicros) }
}

/** The policy with one restriction lifted or widened. */
const widenings: readonly ((policy: Policy) => Policy)[] = [
  (policy) => ({ ...policy, perTransaction: { max: '1000000' } }),
  (policy) => ({ ...policy, dailyBudget: { ...policy.dailyBudget, max: '1000000' } }),
  (policy) => ({ ...policy, dailyBudget: { max: policy.dailyBudget.max } }),
  (policy) => ({ ...policy, weeklyBudget: undefined }),
  (policy) => ({ ...policy, weeklyBudget: policy.weeklyBudget && { max: policy.weeklyBudget.max } }),
  (policy) => ({ ...policy, monthlyBudget: undefined }),
  (policy) => ({ ...policy, totalBudget: undefined }),
  (policy) => ({
    ...policy,
    monthlyBudget: policy.monthlyBudget && { ...policy.monthlyBudget, max: '1000000' },
  }),
  (policy) => ({ ...policy, categories: { allow: [...spendCategories] } }),
  (policy) => ({ ...policy, assets: undefined }),
  (policy) => ({ ...policy, assets: policy.assets && [...policyAssets] }),
  (policy) => ({ ...policy, chains: undefined }),
  (policy) => ({ ...policy, notBefore: undefined }),
  (policy) => ({ ...policy, expiresAt: undefined }),
  (policy) => ({ ...policy, counterparties: undefined }),
  (policy) => ({ ...policy, mcc: undefined }),
  (policy) => ({ ...policy, mcc: { ...policy.mcc, deny: [] } }),
  (policy) => ({ ...policy, symbols: undefined }),
  (policy) => ({ ...policy, symbols: { ...policy.symbols, allow: undefined } }),
  (policy) => ({ ...policy, timeWindows: undefined }),
  (policy) => ({
    ...policy,
    timeWindows: policy.timeWindows?.map((open) => ({ ...open, days: ['sun', 'mon', 'wed', 'sat'] })),
  }),
  (policy) => ({ ...policy, counterparties: { ...policy.counterparties, deny: [] } }),
  (policy) => ({ ...policy, counterparties: { ...policy.counterparties, allow: undefined } }),
  (policy) => ({ ...policy, counterparties: { ...policy.counterparties, newPayeeCooldownSec: undefined } }),
  (policy) => ({
    ...policy,
    counterparties: policy.counterparties?.newPayeeCooldownSec
      ? { ...policy.counterparties, newPayeeCooldownSec: 1 }
      : policy.counterparties,
  }),
  (policy) => ({ ...policy, approval: undefined }),
  (policy) => ({ ...policy, approval: policy.approval && { ...policy.approval, above: '1000000' } }),
]

describe('any policy', () => {
  it('denies nothing more when it is loosened', () => {
    fc.assert(
      fc.property(
        policies,
        fc.constantFrom(...widenings),
        spends,
        usages,
        sightings,
        times,
        (tight, loosen, spend, usage, seen, now) => {
          const before = judge(tight, spend, usage, seen, now)
          const after = judge(loosen(tight), spend, usage, seen, now)
          expect(after.rules.filter((rule) => !before.rules.includes(rule))).toEqual([])
          if (after.mustAsk) expect(before.mustAsk).toBe(true)
        },
      ),
    )
  })

  it('allows nothing more after a change that does not loosen', () => {
    const members = Object.keys(spendPolicy.shape)
    fc.assert(
      fc.property(
        policies,
        policies,
        fc.subarray(members, { minLength: 1, maxLength: 2 }),
        spends,
        usages,
        sightings,
        times,
        (before, other, changed, spend, usage, seen, now) => {
          const taken = Object.entries(other).filter(([member]) => changed.includes(member))
          const kept = Object.entries(before).filter(([member]) => !changed.includes(member))
          const after = spendPolicy.safeParse(Object.fromEntries([...kept, ...taken])).data
          if (after === undefined) return
          const [then, since] = [
            judge(before, spend, usage, seen, now),
            judge(after, spend, usage, seen, now),
          ]
          const isFreed = since.rules.length === 0 && then.rules.length > 0
          const needsNoApproval = since.rules.length === 0 && !since.mustAsk && then.mustAsk
          if (isFreed || needsNoApproval) expect(loosenings(before, after)).not.toEqual([])
          expect(loosenings(after, after)).toEqual([])
        },
      ),
      { numRuns: 400 },
    )
  })

  it('detects every loosening', () => {
    fc.assert(
      fc.property(policies, fc.constantFrom(...widenings), (tight, loosen) => {
        const after = loosen(tight)
        if (JSON.stringify(after) !== JSON.stringify(tight)) expect(loosenings(after, tight)).toEqual([])
      }),
    )
    expect(loosenings(null, null)).toEqual([])
  })

  it('never pays a denied payee, whatever else it allows', () => {
    fc.assert(
      fc.property(policies, spends, times, fc.constantFrom(...payees), (policy, spend, now, payee) => {
        const denying: Policy = { ...policy, counterparties: { ...policy.counterparties, deny: [payee] } }
        const violations = evaluate(denying, { ...spend, counterparty: payee.toUpperCase() }, now)
        expect(violations.map(({ rule }) => rule)).toContain('counterparty')
      }),
    )
  })

  it('judges every spend, with each rule named once', () => {
    fc.assert(
      fc.property(policies, spends, usages, sightings, times, (policy, spend, usage, seen, now) => {
        const { rules: names } = judge(policy, spend, usage, seen, now)
        expect(new Set(names).size).toBe(names.length)
      }),
    )
  })

  it('never allows more under a lower owner cap, and an unpriced spend never fits one', () => {
    const micros = fc.bigInt({ min: 0n, max: 100n })
    fc.assert(
      fc.property(micros, micros, micros, times, (cap, used, worth, now) => {
        const usage = { day: used, week: used, month: used, life: used }
        for (const period of ['day', 'week', 'month'] as const) {
          const none = { day: null, week: null, month: null }
          const caps = { ...none, [period]: cap }
          expect(ownerViolations(none, worth, usage, now)).toEqual([])
          expect(ownerViolations(caps, null, usage, now)).toMatchObject([{ requested: null }])
          expect(ownerViolations(caps, worth, usage, now).length === 0).toBe(used + worth <= cap)
        }
      }),
    )
  })

  it('round-trips through JSON', () => {
    fc.assert(
      fc.property(policies, (policy) => {
        expect(spendPolicy.parse(policy)).toEqual(policy)
      }),
    )
  })

  it('never throws on an invalid document', () => {
    const property = fc.property(fc.anything(), (document) => void spendPolicy.safeParse(document))
    expect(fc.check(property)).toMatchObject({ failed: false })
  })
})
