/** Amounts in words: nothing that was spent reads as nothing, and no limit is rounded. */
import { describe, expect, it } from 'vitest'
import { formatUsd, isAmount } from '../../src/console/words/money.ts'
import { describeViolation } from '../../src/console/words/policy.ts'

describe('amounts in words', () => {
  it.each([
    ['0.001', '$0.001'],
    ['-0.000001', '-$0.000001'],
    ['0', '$0.00'],
    ['0.010', '$0.01'],
    ['10.004', '$10.00'],
    ['1234.5', '$1,234.50'],
  ])('shows %s USD as %s', (amount, words) => expect(formatUsd(amount)).toBe(words))

  it('names a limit and what breaks it with all their digits', () => {
    expect(describeViolation({ rule: 'per_transaction', requested: '10.001', limit: '10' })).toBe(
      '$10.001 is above $10.00 a payment',
    )
  })

  it.each(['1,50', '1e3', '1.0000001', '-1', '.5', '١٢', ' 1', ''])('refuses “%s” as an amount', (text) =>
    expect(isAmount(text)).toBe(false),
  )
})
