/** Amounts in words: nothing that was spent reads as nothing, and no limit is rounded. */
import { describe, expect, it } from 'vitest'
import {
  formatSignedPercent,
  formatSignedUsd,
  formatUsd,
  isAmount,
  sumWorth,
} from '../../src/console/words/money.ts'
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

  it.each([
    ['3.5', '+$3.50'],
    ['-3.5', '\u2212$3.50'],
    ['0.00', '$0.00'],
    ['-0.00', '$0.00'],
  ])('shows a gain of %s USD as %s', (amount, words) => expect(formatSignedUsd(amount)).toBe(words))

  it.each([
    ['-0.6603', '\u22120.66%'],
    ['6.7349', '+6.73%'],
    ['0.0000', '0.00%'],
  ])('shows a return of %s percent as %s', (percent, words) =>
    expect(formatSignedPercent(percent)).toBe(words),
  )

  it('names a limit and what breaks it with all their digits', () => {
    expect(describeViolation({ rule: 'per_transaction', requested: '10.001', limit: '10' })).toBe(
      '$10.001 is above $10.00 a payment',
    )
  })

  it('adds up in dollars, and apart what has no rate', () => {
    const amounts = [
      { asset: 'USDC', amount: '2', usd: '2' },
      { asset: 'EURC', amount: '1.5', usd: '1.64' },
      { asset: 'PYUSD', amount: '3', usd: null },
      { asset: 'PYUSD', amount: '0.25', usd: null },
      { asset: 'USDT', amount: '0', usd: null },
    ]
    expect(sumWorth(amounts)).toEqual({ usd: '3.64', unpriced: [{ asset: 'PYUSD', amount: '3.25' }] })
  })

  it.each(['1,50', '1e3', '1.0000001', '-1', '.5', '١٢', ' 1', ''])('refuses “%s” as an amount', (text) =>
    expect(isAmount(text)).toBe(false),
  )
})
