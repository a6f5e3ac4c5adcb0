import { describe, expect, it } from 'vitest'
import { available, external, held, revenue } from '../../src/ledger/accounts.ts'

describe('the names of ledger accounts', () => {
  it('say whose money it is, where it is and whether it is held', () => {
    expect(available('acct_ada', 'base')).toBe('acct_ada:base:available')
    expect(held('acct_ada', 'base')).toBe('acct_ada:base:held')
    expect(external('base')).toBe('external:base')
    expect(revenue('fees')).toBe('revenue:fees')
  })

  it.each(['', 'ada', 'acct_', 'acct_ada:base', 'my_acct_ada', 'external'])(
    'take "%s" for no owner',
    (id) => {
      for (const account of [available, held])
        expect(() => account(id, 'base')).toThrow(new RangeError(`${id} is not the id of an account`))
    },
  )
})
