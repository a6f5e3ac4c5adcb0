import { describe, expect, it } from 'vitest'
import { needsApproval } from '../../policies/approval.ts'
import { loosenings } from '../../policies/loosening.ts'
import { spendPolicy } from '../../policies/policy.ts'

const plain = {
  perTransaction: { max: '10' },
  dailyBudget: { max: '100' },
  categories: { allow: ['transfer'] },
}
const policyWith = (extra: object) => spendPolicy.parse({ ...plain, ...extra })

describe('approval', () => {
  it('is needed above the amount and not at it, and for an unknown value', () => {
    const policy = policyWith({ approval: { above: '5.00' } })
    expect(policy.approval).toEqual({ above: '5', ttlSec: 86_400 })
    expect(needsApproval(policy, 5_000_000n)).toBe(false)
    expect(needsApproval(policy, 5_000_001n)).toBe(true)
    expect(needsApproval(policy, null)).toBe(true)
    expect(needsApproval(policyWith({}), null)).toBe(false)
  })

  it('may start above the maximum of one spend', () => {
    expect(policyWith({ approval: { above: '11', ttlSec: 60 } }).approval?.above).toBe('11')
  })

  it.each([59, 604_801, 1.5])('rejects a lifetime of %s seconds', (ttlSec) => {
    expect(spendPolicy.safeParse({ ...plain, approval: { above: '1', ttlSec } }).success).toBe(false)
  })
})

describe('a change of the approval rule', () => {
  const withApproval = policyWith({ approval: { above: '5', ttlSec: 60 } })
  const slow = policyWith({ counterparties: { newPayeeCooldownSec: 60 } })

  it('loosens by removing or raising the threshold, not by a longer lifetime', () => {
    expect(loosenings(withApproval, policyWith({}))).toEqual(['approval'])
    expect(loosenings(withApproval, policyWith({ approval: { above: '5.01' } }))).toEqual(['approval'])
    expect(loosenings(withApproval, policyWith({ approval: { above: '5', ttlSec: 604_800 } }))).toEqual([])
    expect(loosenings(policyWith({}), withApproval)).toEqual([])
  })

  it('loosens by a shorter or removed cool-down', () => {
    expect(loosenings(slow, policyWith({ counterparties: { newPayeeCooldownSec: 59 } }))).toEqual([
      'counterparties',
    ])
    expect(loosenings(slow, policyWith({}))).toEqual(['counterparties'])
    expect(loosenings(slow, policyWith({ counterparties: { newPayeeCooldownSec: 61 } }))).toEqual([])
    expect(loosenings(policyWith({}), slow)).toEqual([])
  })
})
