import { describe, expect, it } from 'vitest'
import { loosenings } from '../../policies/loosening.ts'
import { type Policy, spendPolicy } from '../../policies/policy.ts'
import { policyPresets } from '../../policies/presets.ts'

describe('the policy presets', () => {
  const policies: Policy[] = policyPresets.map(({ perTransaction, daily, weekly, monthly, approvalAbove }) =>
    spendPolicy.parse({
      perTransaction: { max: perTransaction },
      dailyBudget: { max: daily },
      weeklyBudget: { max: weekly },
      monthlyBudget: { max: monthly },
      categories: { allow: ['transfer'] },
      ...(approvalAbove === null ? {} : { approval: { above: approvalAbove } }),
    }),
  )

  it('start with the most careful, and each is looser than the one before', () => {
    expect(policyPresets.map(({ name, title }) => [name, title])).toEqual([
      ['careful', 'Careful'],
      ['everyday', 'Everyday'],
      ['generous', 'Generous'],
    ])
    for (const [index, policy] of policies.entries()) {
      const before = policies[index - 1]
      if (before === undefined) continue
      expect(loosenings(before, policy)).toEqual([
        'perTransaction',
        'dailyBudget',
        'weeklyBudget',
        'monthlyBudget',
        'approval',
      ])
      expect(loosenings(policy, before)).toEqual([])
    }
  })
})
