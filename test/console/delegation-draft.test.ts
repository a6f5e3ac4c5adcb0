/** Delegations while they are entered, and the requests that they make. */
import { describe, expect, it } from 'vitest'
import {
  computeEnd,
  emptyDelegation,
  findDelegationProblems,
  findField,
  toDelegation,
} from '../../src/console/words/delegation-draft.ts'

const times = { now: new Date('2026-11-20T12:00:00.000Z'), parentEnd: null }
const end = new Date('2026-11-21T12:00:00.000Z')
const draft = { ...emptyDelegation, name: ' Helper ', amount: '8' }
const parent = {
  agentId: 'key_1',
  scopes: ['wallets:read', 'wallets:transfer', 'purchases:pay', 'agents:delegate'],
  policy: {
    perTransaction: { max: '5' },
    dailyBudget: { max: '20' },
    categories: { allow: ['transfer' as const, 'x402' as const] },
  },
}

describe('a delegation', () => {
  it('gets what the parent has, but not the right to delegate, within its own amount', () => {
    expect(toDelegation(draft, parent, end)).toEqual({
      parentId: 'key_1',
      name: 'Helper',
      scopes: ['wallets:read', 'wallets:transfer', 'purchases:pay'],
      policy: {
        perTransaction: { max: '5' },
        dailyBudget: { max: '8' },
        totalBudget: { max: '8' },
        categories: { allow: ['transfer', 'x402'] },
      },
      expiresAt: '2026-11-21T12:00:00.000Z',
      earmark: true,
      bearer: true,
    })
  })

  it('allows no way to pay that its access does not have', () => {
    const withheld = ['purchases:pay', 'agents:delegate']
    const { policy } = toDelegation({ ...draft, withheld, amount: '50' }, parent, end)
    expect(policy).toMatchObject({ dailyBudget: { max: '20' }, categories: { allow: ['transfer'] } })
  })

  it('asks for a key with a public key instead of a secret, and with a task', () => {
    const given = { ...draft, proof: 'own_key' as const, publicKey: ' abc ', task: ' report-17 ' }
    const request = toDelegation(given, parent, end)
    expect(request).toMatchObject({ publicKey: 'abc', task: 'report-17' })
    expect(request).not.toHaveProperty('bearer')
  })

  it('ends with the parent at the latest', () => {
    expect(computeEnd({ ...draft, span: 'hour' }, times)).toEqual(new Date('2026-11-20T13:00:00.000Z'))
    const parentEnd = '2026-11-20T12:30:00.000Z'
    expect(computeEnd(draft, { ...times, parentEnd })).toEqual(new Date(parentEnd))
    expect(computeEnd({ ...draft, span: 'other' }, times)).toBeNull()
  })
})

describe('what is wrong with it', () => {
  it('names each wrong field before anything is sent', () => {
    expect(findDelegationProblems(draft, times)).toEqual({})
    expect(Object.keys(findDelegationProblems(emptyDelegation, times))).toEqual(['name', 'amount'])
    const wrong = { ...draft, task: 'Prüfung', amount: '0', each: '1e3', span: 'other' as const }
    expect(findDelegationProblems({ ...wrong, until: '2020-01-01T00:00' }, times)).toEqual({
      task: 'Letters without accents, digits and signs, at most 64.',
      amount: 'More than nothing.',
      each: 'An amount such as 2.50.',
      until: 'This has passed. Choose a later time.',
    })
    expect(findDelegationProblems({ ...draft, each: '9', proof: 'own_key' }, times)).toEqual({
      each: 'More than it has in total.',
      publicKey: 'Paste the public key of the agent.',
    })
  })

  it('places a refusal at the field of the member that the gateway names', () => {
    expect(findField('policy.perTransaction.max')).toBe('each')
    expect(findField('policy.totalBudget')).toBe('amount')
    expect(findField('expiresAt')).toBe('until')
    expect(findField('parentId')).toBeUndefined()
  })
})
