import { describe, expect, it } from 'vitest'
import { cooldownViolation, dailyViolations, ownerViolation } from '../../policies/budget.ts'
import { spendPolicy } from '../../policies/policy.ts'

const now = new Date('2026-12-31T23:59:59.999Z')
const resetsAt = '2027-01-01T00:00:00.000Z'
const policy = spendPolicy.parse({
  perTransaction: { max: '50' },
  dailyBudget: { max: '100', maxCount: 3 },
  categories: { allow: [] },
})

describe('dailyViolations', () => {
  it('allows a spend that exactly uses up the budget, as the last of the day', () => {
    expect(dailyViolations(policy, 40_000_000n, { usedMicros: 60_000_000n, count: 2 }, now)).toEqual([])
  })

  it('denies a millionth over the budget, with the remainder and the reset time', () => {
    expect(dailyViolations(policy, 40_000_001n, { usedMicros: 60_000_000n, count: 0 }, now)).toEqual([
      { rule: 'daily_budget', limit: '100', used: '60', requested: '40.000001', remaining: '40', resetsAt },
    ])
  })

  it('denies one spend over the count', () => {
    expect(dailyViolations(policy, 1n, { usedMicros: 0n, count: 3 }, now)).toEqual([
      { rule: 'daily_count', limit: '3', used: '3', requested: '1', remaining: '0', resetsAt },
    ])
  })

  it('denies an unpriced spend, and reports no negative remainder after the budget was lowered', () => {
    expect(dailyViolations(policy, null, { usedMicros: 250_000_000n, count: 9 }, now)).toEqual([
      { rule: 'daily_budget', limit: '100', used: '250', requested: null, remaining: '0', resetsAt },
      { rule: 'daily_count', limit: '3', used: '9', requested: '1', remaining: '0', resetsAt },
    ])
  })
})

describe('ownerViolation', () => {
  it('denies a millionth over the cap of all keys, with the remainder and the reset time', () => {
    expect(ownerViolation(100_000_000n, 40_000_000n, 60_000_000n, now)).toBeUndefined()
    expect(ownerViolation(100_000_000n, 40_000_001n, 60_000_000n, now)).toEqual({
      rule: 'owner_budget',
      limit: '100',
      used: '60',
      requested: '40.000001',
      remaining: '40',
      resetsAt,
    })
    expect(ownerViolation(0n, 0n, 0n, now)).toBeUndefined()
    expect(ownerViolation(10n, -1n, 0n, now)).toMatchObject({ rule: 'owner_budget' })
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
    expect(dailyViolations(policy, null, { usedMicros: 0n, count: 0 }, new Date('never'))).toMatchObject([
      { resetsAt: null },
    ])
  })

  it('allows every payee without a cool-down', () => {
    expect(cooldownViolation(policy, null, null, noon)).toBeUndefined()
    expect(cooldownViolation({ ...waiting, counterparties: {} }, payee, null, noon)).toBeUndefined()
  })
})
