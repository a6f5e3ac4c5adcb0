import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dailyViolations } from '../../policies/budget.ts'
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
import { usdOfMicros } from '../../policies/usd.ts'

const payees = ['1', '2', '3', '4'].map((digit) => `0x${digit.repeat(40)}`)
const moments = ['2026-01-01T00:00:00Z', '2026-06-01T00:00:00Z', '2026-12-01T00:00:00Z'] as const
const cents = fc.bigInt({ min: 1n, max: 10_000n })
const usd = cents.map((count) => usdOfMicros(count * 10_000n))

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

const policies = fc
  .record(
    {
      perTransaction: fc.record({ max: usd }),
      dailyBudget: fc.record(
        { max: usd, maxCount: fc.integer({ min: 1, max: 5 }) },
        { requiredKeys: ['max'] },
      ),
      categories: fc.record({ allow: fc.subarray([...spendCategories]) }),
      counterparties: fc.record(
        { allow: fc.subarray(payees), deny: fc.subarray(payees) },
        { requiredKeys: [] },
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

const usages = fc.record({
  usedMicros: fc.bigInt({ min: 0n, max: 120_000_000n }),
  count: fc.integer({ min: 0, max: 6 }),
})
const times = fc.date({ min: new Date('2025-06-01'), max: new Date('2027-06-01'), noInvalidDate: false })

/** The policy with one restriction lifted or widened. */
const widenings: readonly ((policy: Policy) => Policy)[] = [
  (policy) => ({ ...policy, perTransaction: { max: '1000000' } }),
  (policy) => ({ ...policy, dailyBudget: { ...policy.dailyBudget, max: '1000000' } }),
  (policy) => ({ ...policy, dailyBudget: { max: policy.dailyBudget.max } }),
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
]

describe('any policy', () => {
  it('denies nothing more when it is loosened', () => {
    fc.assert(
      fc.property(
        policies,
        fc.constantFrom(...widenings),
        spends,
        usages,
        times,
        (tight, loosen, spend, usage, now) => {
          const rulesOf = (policy: Policy) =>
            [...evaluate(policy, spend, now), ...dailyViolations(policy, spend.usdMicros, usage, now)].map(
              ({ rule }) => rule,
            )
          const before = rulesOf(tight)
          expect(rulesOf(loosen(tight)).filter((rule) => !before.includes(rule))).toEqual([])
        },
      ),
    )
  })

  it('allows nothing more by a change that loosens nothing', () => {
    const members = Object.keys(spendPolicy.shape)
    fc.assert(
      fc.property(
        policies,
        policies,
        fc.subarray(members, { minLength: 1, maxLength: 2 }),
        spends,
        usages,
        times,
        (before, other, changed, spend, usage, now) => {
          const taken = Object.entries(other).filter(([member]) => changed.includes(member))
          const kept = Object.entries(before).filter(([member]) => !changed.includes(member))
          const after = spendPolicy.safeParse(Object.fromEntries([...kept, ...taken])).data
          if (after === undefined) return
          const isAllowed = (policy: Policy) =>
            evaluate(policy, spend, now).length === 0 &&
            dailyViolations(policy, spend.usdMicros, usage, now).length === 0
          if (isAllowed(after) && !isAllowed(before)) expect(loosenings(before, after)).not.toEqual([])
          expect(loosenings(after, after)).toEqual([])
        },
      ),
      { numRuns: 400 },
    )
  })

  it('is known to loosen where it is', () => {
    fc.assert(
      fc.property(policies, fc.constantFrom(...widenings), (tight, loosen) => {
        const after = loosen(tight)
        if (JSON.stringify(after) !== JSON.stringify(tight)) expect(loosenings(after, tight)).toEqual([])
      }),
    )
    expect(loosenings(null, null)).toEqual([])
  })

  it('never pays whom it denies, whatever else it allows', () => {
    fc.assert(
      fc.property(policies, spends, times, fc.constantFrom(...payees), (policy, spend, now, payee) => {
        const denying: Policy = { ...policy, counterparties: { ...policy.counterparties, deny: [payee] } }
        const violations = evaluate(denying, { ...spend, counterparty: payee.toUpperCase() }, now)
        expect(violations.map(({ rule }) => rule)).toContain('counterparty')
      }),
    )
  })

  it('answers every spend, with each rule named once', () => {
    fc.assert(
      fc.property(policies, spends, usages, times, (policy, spend, usage, now) => {
        const violations = [
          ...evaluate(policy, spend, now),
          ...dailyViolations(policy, spend.usdMicros, usage, now),
        ]
        const names = violations.map(({ rule }) => rule)
        expect(new Set(names).size).toBe(names.length)
      }),
    )
  })

  it('reads back as it is written', () => {
    fc.assert(
      fc.property(policies, (policy) => {
        expect(spendPolicy.parse(policy)).toEqual(policy)
      }),
    )
  })

  it('never throws on a document that is no policy', () => {
    fc.assert(fc.property(fc.anything(), (document) => void spendPolicy.safeParse(document)))
  })
})
