import { describe, expect, it } from 'vitest'
import {
  type BudgetPeriod,
  type BudgetSpan,
  budgetViolations,
  cooldownViolation,
  findPeriod,
  ownerViolations,
} from '../../policies/budget.ts'
import { spendPolicy } from '../../policies/policy.ts'

const now = new Date('2026-12-31T23:59:59.999Z')
const resetsAt = '2027-01-01T00:00:00.000Z'
const policy = spendPolicy.parse({
  perTransaction: { max: '50' },
  dailyBudget: { max: '100', maxCount: 3 },
  categories: { allow: [] },
})

const idle = { usedMicros: 0n, count: 0 }
const usage = (period: BudgetSpan, usedMicros: bigint, count: number) => ({
  day: idle,
  week: idle,
  month: idle,
  life: idle,
  [period]: { usedMicros, count },
})

describe('budgetViolations', () => {
  it('allows a spend that exactly uses up the budget, as the last of the day', () => {
    expect(budgetViolations(policy, 40_000_000n, usage('day', 60_000_000n, 2), now)).toEqual([])
  })

  it('denies a millionth over the budget, with the remainder and the reset time', () => {
    expect(budgetViolations(policy, 40_000_001n, usage('day', 60_000_000n, 0), now)).toEqual([
      { rule: 'daily_budget', limit: '100', used: '60', requested: '40.000001', remaining: '40', resetsAt },
    ])
  })

  it('denies one spend over the count', () => {
    expect(budgetViolations(policy, 1n, usage('day', 0n, 3), now)).toEqual([
      { rule: 'daily_count', limit: '3', used: '3', requested: '1', remaining: '0', resetsAt },
    ])
  })

  it('denies an unpriced spend, and reports no negative remainder after the budget was lowered', () => {
    expect(budgetViolations(policy, null, usage('day', 250_000_000n, 9), now)).toEqual([
      { rule: 'daily_budget', limit: '100', used: '250', requested: null, remaining: '0', resetsAt },
      { rule: 'daily_count', limit: '3', used: '9', requested: '1', remaining: '0', resetsAt },
    ])
  })

  it('judges the life of the key, which never resets', () => {
    const total = spendPolicy.parse({ ...policy, totalBudget: { max: '120', maxCount: 4 } })
    expect(budgetViolations(total, 1_000_000n, usage('life', 119_000_000n, 3), now)).toEqual([])
    expect(budgetViolations(total, 2_000_000n, usage('life', 119_000_000n, 4), now)).toEqual([
      { rule: 'total_budget', limit: '120', used: '119', requested: '2', remaining: '1', resetsAt: null },
      { rule: 'total_count', limit: '4', used: '4', requested: '1', remaining: '0', resetsAt: null },
    ])
  })

  it('judges the week and the month beside the day, each with its own end', () => {
    const longer = spendPolicy.parse({
      perTransaction: { max: '50' },
      dailyBudget: { max: '100' },
      weeklyBudget: { max: '200', maxCount: 5 },
      monthlyBudget: { max: '300', maxCount: 9 },
      categories: { allow: [] },
    })
    const over = { limit: '200', used: '199', requested: '2', remaining: '1' }
    expect(budgetViolations(longer, 2_000_000n, usage('week', 199_000_000n, 4), now)).toEqual([
      // The last day of 2026 is a Thursday.
      { rule: 'weekly_budget', ...over, resetsAt: '2027-01-04T00:00:00.000Z' },
    ])
    expect(budgetViolations(longer, 2_000_000n, usage('week', 1n, 5), now)).toMatchObject([
      { rule: 'weekly_count', limit: '5', used: '5' },
    ])
    expect(budgetViolations(longer, 2_000_000n, usage('month', 299_000_000n, 9), now)).toMatchObject([
      { rule: 'monthly_budget', remaining: '1', resetsAt },
      { rule: 'monthly_count', remaining: '0', resetsAt },
    ])
    expect(budgetViolations(policy, 2_000_000n, usage('month', 10n ** 15n, 10_000), now)).toEqual([])
  })
})

describe('ownerViolations', () => {
  const caps = { day: 100_000_000n, week: null, month: null }
  const used = { day: 60_000_000n, week: 60_000_000n, month: 60_000_000n }

  it('deny a millionth over the cap of all keys, with the remainder and the reset time', () => {
    expect(ownerViolations(caps, 40_000_000n, used, now)).toEqual([])
    const violation = {
      rule: 'owner_budget',
      limit: '100',
      used: '60',
      requested: '40.000001',
      remaining: '40',
    }
    expect(ownerViolations(caps, 40_000_001n, used, now)).toEqual([{ ...violation, resetsAt }])
    expect(ownerViolations({ ...caps, day: null, week: 100_000_000n }, 40_000_001n, used, now)).toEqual([
      { ...violation, resetsAt: '2027-01-04T00:00:00.000Z' },
    ])
    const none = { day: 0n, week: 0n, month: 0n }
    expect(ownerViolations(none, 0n, none, now)).toEqual([])
    expect(ownerViolations({ day: 10n, week: null, month: 10n }, -1n, none, now)).toHaveLength(2)
  })
})

describe('periodOf', () => {
  it.each<[BudgetPeriod, string, string, string]>([
    ['day', '2028-02-28T23:59:59.999Z', '2028-02-28', '2028-02-29'],
    ['day', '2026-02-28T00:00:00.000Z', '2026-02-28', '2026-03-01'],
    ['week', '2026-11-22T23:59:59.999Z', '2026-11-16', '2026-11-23'],
    ['week', '2026-11-23T00:00:00.000Z', '2026-11-23', '2026-11-30'],
    // ISO week 53 of 2026 ends in 2027, week 1 of 2025 begins in 2024.
    ['week', '2027-01-03T12:00:00.000Z', '2026-12-28', '2027-01-04'],
    ['week', '2024-12-30T00:00:00.000Z', '2024-12-30', '2025-01-06'],
    ['week', '2028-02-29T12:00:00.000Z', '2028-02-28', '2028-03-06'],
    ['month', '2026-12-31T23:59:59.999Z', '2026-12-01', '2027-01-01'],
    ['month', '2028-02-29T12:00:00.000Z', '2028-02-01', '2028-03-01'],
    ['month', '2027-01-01T00:00:00.000Z', '2027-01-01', '2027-02-01'],
  ])('the %s of %s runs from %s to %s', (period, at, start, end) => {
    const found = findPeriod(period, new Date(at))
    expect([found.start, found.end]).toEqual([new Date(start), new Date(end)])
  })
})

describe('cooldownViolation', () => {
  const noon = new Date('2026-11-20T12:00:00.000Z')
  const payee = `0x${'Ab'.repeat(20)}`
  const waiting = spendPolicy.parse({
    perTransaction: { max: '50' },
    dailyBudget: { max: '100' },
    categories: { allow: [] },
    counterparties: { newPayeeCooldownSec: 60 },
  })
  const ago = (seconds: number) => new Date(noon.getTime() - seconds * 1000)
  const violation = { rule: 'new_payee_cooldown', limit: '60', used: null, remaining: null }

  it('denies a payee from its first request until the cool-down ends', () => {
    const requested = payee.toLowerCase()
    expect(cooldownViolation(waiting, payee, null, noon)).toEqual({
      ...violation,
      requested,
      resetsAt: '2026-11-20T12:01:00.000Z',
    })
    expect(cooldownViolation(waiting, payee, ago(59), noon)).toEqual({
      ...violation,
      requested,
      resetsAt: '2026-11-20T12:00:01.000Z',
    })
    expect(cooldownViolation(waiting, payee, ago(60), noon)).toBeUndefined()
  })

  it('always denies an unknown payee, and any payee at an invalid time', () => {
    expect(cooldownViolation(waiting, null, ago(9000), noon)).toEqual({
      ...violation,
      requested: null,
      resetsAt: null,
    })
    expect(cooldownViolation(waiting, payee, null, new Date('never'))).toMatchObject({ resetsAt: null })
    expect(budgetViolations(policy, null, usage('day', 0n, 0), new Date('never'))).toMatchObject([
      { resetsAt: null },
    ])
  })

  it('allows every payee without a cool-down', () => {
    expect(cooldownViolation(policy, null, null, noon)).toBeUndefined()
    expect(cooldownViolation({ ...waiting, counterparties: {} }, payee, null, noon)).toBeUndefined()
  })
})
