import { describe, expect, it } from 'vitest'
import { available, external, held, revenue } from '../../../src/books/ledger/accounts.ts'

describe('ledger account names', () => {
  it('name the owner, the place and whether the money is held', () => {
    expect(available('acct_ada', 'base')).toBe('acct_ada:base:available')
    expect(held('acct_ada', 'base')).toBe('acct_ada:base:held')
    expect(external('base')).toBe('external:base')
    expect(revenue('fees')).toBe('revenue:fees')
  })

  it.each(['', 'ada', 'acct_', 'acct_ada:base', 'my_acct_ada', 'external'])('have no owner in "%s"', (id) => {
    for (const account of [available, held])
      expect(() => account(id, 'base')).toThrow(new RangeError(`${id} is not the id of an account`))
  })
})
