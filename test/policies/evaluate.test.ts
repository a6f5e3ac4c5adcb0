import { describe, expect, it } from 'vitest'
import { toVerdict } from '../../policies/decision.ts'
import { evaluate } from '../../policies/evaluate.ts'
import { type Policy, spendPolicy } from '../../policies/policy.ts'
import type { SpendFacts } from '../../policies/spend.ts'

const now = new Date('2026-11-20T12:00:00.000Z')
const payee = '0x1111111111111111111111111111111111111111'
const other = '0xABCDEFabcdef1111111111111111111111111111'

const policyWith = (parts: object): Policy =>
  spendPolicy.parse({
    perTransaction: { max: '50' },
    dailyBudget: { max: '100' },
    categories: { allow: ['transfer', 'x402'] },
    ...parts,
  })

const spendWith = (parts: Partial<SpendFacts>): SpendFacts => ({
  category: 'transfer',
  asset: 'USDC',
  usdMicros: 10_000_000n,
  chain: 'base-sepolia',
  counterparty: payee,
  mcc: null,
  symbol: null,
  ...parts,
})

const uncounted = { used: null, remaining: null, resetsAt: null }

describe('evaluate', () => {
  it('allows a spend that satisfies every rule', () => {
    expect(evaluate(policyWith({}), spendWith({ usdMicros: 50_000_000n }), now)).toEqual([])
    expect(toVerdict([])).toEqual({ allowed: true, violations: [] })
  })

  it('denies a spend over the cap, and an unpriced one', () => {
    const over = evaluate(policyWith({}), spendWith({ usdMicros: 50_000_001n }), now)
    expect(over).toEqual([
      { ...uncounted, rule: 'per_transaction', limit: '50', requested: '50.000001', remaining: '50' },
    ])
    const unknown = evaluate(policyWith({}), spendWith({ usdMicros: null }), now)
    expect(unknown).toEqual([
      { ...uncounted, rule: 'per_transaction', limit: '50', requested: null, remaining: '50' },
    ])
    expect(evaluate(policyWith({}), spendWith({ usdMicros: -1n }), now)).toHaveLength(1)
  })

  it('denies an unlisted category', () => {
    expect(evaluate(policyWith({}), spendWith({ category: 'card' }), now)).toEqual([
      { ...uncounted, rule: 'category', limit: 'transfer,x402', requested: 'card' },
    ])
    expect(evaluate(policyWith({ categories: { allow: [] } }), spendWith({}), now)).toEqual([
      { ...uncounted, rule: 'category', limit: '', requested: 'transfer' },
    ])
  })

  it('denies an unlisted asset or chain, and an unknown chain', () => {
    const policy = policyWith({ assets: ['USDC', 'EURC'], chains: ['base-sepolia', 'base'] })
    expect(evaluate(policy, spendWith({}), now)).toEqual([])
    expect(evaluate(policy, spendWith({ asset: 'EURC', chain: 'base' }), now)).toEqual([])
    expect(evaluate(policy, spendWith({ asset: 'USDT', chain: null }), now)).toEqual([
      { ...uncounted, rule: 'asset', limit: 'USDC,EURC', requested: 'USDT' },
      { ...uncounted, rule: 'chain', limit: 'base-sepolia,base', requested: null },
    ])
  })

  it('denies a payee on the deny list, even if the allow list names it', () => {
    const policy = policyWith({ counterparties: { allow: [payee, other], deny: [other] } })
    expect(evaluate(policy, spendWith({}), now)).toEqual([])
    expect(
      evaluate(policy, spendWith({ counterparty: other.toUpperCase().replace('0X', '0x') }), now),
    ).toEqual([expect.objectContaining({ rule: 'counterparty', limit: `not ${other.toLowerCase()}` })])
  })

  it('denies an unknown payee whenever a list applies', () => {
    const unknownPayee = spendWith({ counterparty: null })
    const findRules = (counterparties: object) =>
      evaluate(policyWith({ counterparties }), unknownPayee, now).map(({ rule }) => rule)
    expect(findRules({ allow: [payee] })).toEqual(['counterparty'])
    expect(findRules({ deny: [payee] })).toEqual(['counterparty'])
    expect(findRules({ deny: [] })).toEqual([])
    expect(findRules({})).toEqual([])
  })

  it('checks the merchant category of card purchases only', () => {
    const policy = policyWith({
      categories: { allow: ['transfer', 'card'] },
      mcc: { allow: ['5411', '5812'], deny: ['5812'] },
    })
    const findRules = (parts: Partial<SpendFacts>) =>
      evaluate(policy, spendWith(parts), now).map(({ rule }) => rule)
    expect(findRules({})).toEqual([])
    expect(findRules({ category: 'card', mcc: '5411' })).toEqual([])
    for (const mcc of ['5812', '7995', null]) expect(findRules({ category: 'card', mcc })).toEqual(['mcc'])
    const denying = policyWith({ categories: { allow: ['card'] }, mcc: { deny: ['7995'] } })
    const countDenials = (mcc: string | null) =>
      evaluate(denying, spendWith({ category: 'card', mcc }), now).length
    expect([countDenials('7995'), countDenials('5411'), countDenials(null)]).toEqual([1, 0, 1])
  })

  it('checks the symbol of investments only, in any case', () => {
    const policy = policyWith({
      categories: { allow: ['transfer', 'invest'] },
      symbols: { allow: ['vti', 'BRK.B'], deny: ['BRK.B'] },
    })
    const findRules = (parts: Partial<SpendFacts>) =>
      evaluate(policy, spendWith(parts), now).map(({ rule }) => rule)
    expect(findRules({})).toEqual([])
    expect(findRules({ category: 'invest', symbol: 'vti' })).toEqual([])
    for (const symbol of ['BRK.B', 'brk.b', 'TSLA', null])
      expect(findRules({ category: 'invest', symbol })).toEqual(['symbol'])
  })

  it('allows from notBefore until just before expiresAt', () => {
    const window = { notBefore: '2026-11-20T12:00:00Z', expiresAt: '2026-11-20T12:00:01Z' }
    const rulesAt = (at: string) =>
      evaluate(policyWith(window), spendWith({}), new Date(at)).map(({ rule }) => rule)
    expect(rulesAt('2026-11-20T11:59:59.999Z')).toEqual(['not_yet_valid'])
    expect(rulesAt('2026-11-20T12:00:00.000Z')).toEqual([])
    expect(rulesAt('2026-11-20T12:00:01.000Z')).toEqual(['expired'])
    expect(rulesAt('never')).toEqual(['not_yet_valid', 'expired'])
  })

  it('names every rule that is violated at once', () => {
    const policy = policyWith({
      assets: [],
      chains: [],
      counterparties: { allow: [] },
      expiresAt: '2026-01-01T00:00:00Z',
    })
    const violations = evaluate(policy, spendWith({ category: 'swap', usdMicros: null }), now)
    expect(violations.map(({ rule }) => rule)).toEqual([
      'per_transaction',
      'category',
      'asset',
      'chain',
      'counterparty',
      'expired',
    ])
    expect(toVerdict(violations).allowed).toBe(false)
  })
})
