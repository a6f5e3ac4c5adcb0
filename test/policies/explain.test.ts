import { describe, expect, it } from 'vitest'
import { explain, type RecordedOutcome } from '../../policies/explain.ts'
import { spendPolicy } from '../../policies/policy.ts'
import type { SpendFacts } from '../../policies/spend.ts'

const spend: SpendFacts = {
  category: 'card',
  asset: 'USD',
  usdMicros: 3_500_000n,
  chain: null,
  counterparty: 'merchant:1',
  mcc: '5942',
  symbol: null,
}
const usage = {
  day: { usedMicros: 1_000_000n, count: 1 },
  week: { usedMicros: 37_700_000n, count: 9 },
  month: { usedMicros: 40_000_000n, count: 12 },
}
const allowed: RecordedOutcome = { verdict: 'allow', violations: [], isApproved: false }
const listRules = (parts: object, outcome: RecordedOutcome, changes: Partial<SpendFacts> = {}) =>
  explain(
    spendPolicy.parse({
      perTransaction: { max: '10' },
      dailyBudget: { max: '20' },
      categories: { allow: ['card', 'transfer'] },
      ...parts,
    }),
    { ...spend, ...changes },
    usage,
    outcome,
  )

describe('an explained decision', () => {
  it('lists every rule of the policy with its limit, what was used and the spend', () => {
    const policy = {
      weeklyBudget: { max: '80', maxCount: 50 },
      mcc: { deny: ['7995'] },
      approval: { above: '5' },
    }
    expect(listRules(policy, allowed)).toEqual([
      { rule: 'per_transaction', limit: '10', used: null, requested: '3.5', result: 'kept' },
      { rule: 'category', limit: 'card,transfer', used: null, requested: 'card', result: 'kept' },
      { rule: 'mcc', limit: 'not 7995', used: null, requested: '5942', result: 'kept' },
      { rule: 'daily_budget', limit: '20', used: '1', requested: '3.5', result: 'kept' },
      { rule: 'weekly_budget', limit: '80', used: '37.7', requested: '3.5', result: 'kept' },
      { rule: 'weekly_count', limit: '50', used: '9', requested: '1', result: 'kept' },
      { rule: 'approval', limit: '5', used: null, requested: '3.5', result: 'kept' },
    ])
  })

  it('leaves out rules that do not concern the spend', () => {
    const policy = { chains: ['base'], sellers: { deny: ['https://a.example'] }, symbols: { allow: ['VTI'] } }
    expect(listRules(policy, allowed).map(({ rule }) => rule)).toEqual([
      'per_transaction',
      'category',
      'daily_budget',
    ])
  })

  it('takes the numbers of a violated rule from the record, and adds violations outside the policy', () => {
    const violations = [
      { rule: 'daily_budget', limit: '20', used: '18', requested: '3.5' },
      { rule: 'paused', limit: null, used: null, requested: null },
    ]
    expect(listRules({}, { verdict: 'deny', violations, isApproved: false }).slice(1)).toEqual([
      { rule: 'category', limit: 'card,transfer', used: null, requested: 'card', result: 'kept' },
      { rule: 'daily_budget', limit: '20', used: '18', requested: '3.5', result: 'broken' },
      { rule: 'paused', limit: null, used: null, requested: null, result: 'broken' },
    ])
  })

  it('says which rule its owner let pass, and where the owner was asked', () => {
    const violations = [{ rule: 'per_transaction' }]
    expect(listRules({}, { verdict: 'allow', violations, isApproved: true })[0]).toMatchObject({
      limit: '10',
      result: 'approved',
    })
    const parseResult = (outcome: Partial<RecordedOutcome>) =>
      listRules({ approval: { above: '3' } }, { ...allowed, ...outcome }).find(
        ({ rule }) => rule === 'approval',
      )?.result
    expect(parseResult({ verdict: 'approval_required' })).toBe('asked')
    expect(parseResult({ isApproved: true })).toBe('approved')
    // A denied spend never reached the question.
    expect(parseResult({ verdict: 'deny' })).toBeUndefined()
  })
})
