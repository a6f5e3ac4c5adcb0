import { describe, expect, it } from 'vitest'
import { evaluate } from '../../../policies/evaluate.ts'
import { type Policy, spendPolicy } from '../../../policies/policy.ts'
import type { SpendFacts } from '../../../policies/spend.ts'

const now = new Date('2026-11-20T12:00:00.000Z')
const [ada, ben, eve] = ['a', 'b', 'e'].map((digit) => `0x${digit.repeat(40)}`)

/** The three rules with an allow list and a deny list: their entries, and a spend of each. */
const rules = [
  {
    rule: 'counterparty',
    names: [ada, ben, eve],
    policy: (lists: object) => ({ counterparties: lists }),
    spend: (named: string | null) => ({ category: 'transfer', counterparty: named }) as const,
  },
  {
    rule: 'mcc',
    names: ['5411', '5812', '7995'],
    policy: (lists: object) => ({ mcc: lists }),
    spend: (named: string | null) => ({ category: 'card', mcc: named }) as const,
  },
  {
    rule: 'symbol',
    names: ['VTI', 'BRK.B', 'TSLA'],
    policy: (lists: object) => ({ symbols: lists }),
    spend: (named: string | null) => ({ category: 'invest', symbol: named }) as const,
  },
]

describe.each(rules)(
  'the lists of $rule',
  ({ rule, names: [first = '', second = '', third = ''], ...make }) => {
    const judge = (lists: object | undefined, named: string | null) => {
      const policy: Policy = spendPolicy.parse({
        perTransaction: { max: '50' },
        dailyBudget: { max: '100' },
        categories: { allow: ['transfer', 'card', 'invest'] },
        ...(lists === undefined ? {} : make.policy(lists)),
      })
      const nothing = { chain: null, counterparty: null, mcc: null, symbol: null }
      const spend: SpendFacts = { asset: 'USDC', usdMicros: 1n, ...nothing, ...make.spend(named) }
      return evaluate(policy, spend, now)
    }
    const violation = (limit: string | null, requested: string | null) => [
      { rule, limit, used: null, requested, remaining: null, resetsAt: null },
    ]

    it('allow only the entries of the allow list, and report it', () => {
      expect(judge({ allow: [first, second] }, first)).toEqual([])
      expect(judge({ allow: [first, second] }, second)).toEqual([])
      expect(judge({ allow: [first, second] }, third)).toEqual(violation(`${first},${second}`, third))
      expect(judge({ allow: [] }, first)).toEqual(violation('', first))
    })

    it('deny the entries of the deny list only, and report the entry', () => {
      expect(judge({ deny: [second, third] }, third)).toEqual(violation(`not ${third}`, third))
      expect(judge({ deny: [second, third] }, first)).toEqual([])
    })

    it('deny an entry of both lists', () => {
      expect(judge({ allow: [first, second], deny: [second] }, second)).toEqual(
        violation(`not ${second}`, second),
      )
      expect(judge({ allow: [first], deny: [second] }, third)).toEqual(violation(first, third))
    })

    it('deny an unknown value whenever a list has entries', () => {
      expect(judge({ allow: [first, second] }, null)).toEqual(violation(`${first},${second}`, null))
      expect(judge({ deny: [first] }, null)).toEqual(violation(null, null))
      expect(judge({ allow: [first], deny: [second] }, null)).toEqual(violation(first, null))
    })

    it('deny nothing when there are none', () => {
      for (const lists of [undefined, {}, { deny: [] }])
        for (const named of [first, null]) expect(judge(lists, named)).toEqual([])
    })
  },
)
