import { describe, expect, it } from 'vitest'
import { dailyViolations } from '../../policies/budget.ts'
import { spendPolicy } from '../../policies/policy.ts'

const now = new Date('2026-12-31T23:59:59.999Z')
const resetsAt = '2027-01-01T00:00:00.000Z'
const policy = spendPolicy.parse({
  perTransaction: { max: '50' },
  dailyBudget: { max: '100', maxCount: 3 },
  categories: { allow: [] },
})

describe('dailyViolations', () => {
  it('allows a spend that uses the budget up exactly, as the last of the day', () => {
    expect(dailyViolations(policy, 40_000_000n, { usedMicros: 60_000_000n, count: 2 }, now)).toEqual([])
  })

  it('refuses a millionth over the budget and says what is left until when', () => {
    expect(dailyViolations(policy, 40_000_001n, { usedMicros: 60_000_000n, count: 0 }, now)).toEqual([
      { rule: 'daily_budget', limit: '100', used: '60', requested: '40.000001', remaining: '40', resetsAt },
    ])
  })

  it('refuses one spend too many', () => {
    expect(dailyViolations(policy, 1n, { usedMicros: 0n, count: 3 }, now)).toEqual([
      { rule: 'daily_count', limit: '3', used: '3', requested: '1', remaining: '0', resetsAt },
    ])
  })

  it('refuses what could not be priced, and shows no negative remainder after the budget was lowered', () => {
    expect(dailyViolations(policy, null, { usedMicros: 250_000_000n, count: 9 }, now)).toEqual([
      { rule: 'daily_budget', limit: '100', used: '250', requested: null, remaining: '0', resetsAt },
      { rule: 'daily_count', limit: '3', used: '9', requested: '1', remaining: '0', resetsAt },
    ])
  })
})
