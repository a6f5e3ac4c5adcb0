import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Failure } from '../../../src/core/failures/failure.ts'
import type { RateTable } from '../../../src/core/money/rate-table.ts'
import { usdMicrosAt } from '../../../src/core/money/usd-value.ts'

const table: RateTable = {
  source: 'test',
  asOf: new Date('2026-11-19T00:00:00Z'),
  perEuro: new Map([
    ['EUR', '1'],
    ['USD', '1.0705'],
    ['INR', '89.2495'],
  ]),
}

describe('usdMicrosAt', () => {
  it('values dollars and their stablecoins at one', () => {
    expect(usdMicrosAt(table, { asset: 'USD', units: 1234n })).toEqual({ usdMicros: 12_340_000n, rate: '1' })
    for (const asset of ['USDC', 'USDT', 'PYUSD'] as const)
      expect(usdMicrosAt(table, { asset, units: 1n })).toEqual({ usdMicros: 1n, rate: '1' })
  })

  it('rounds the value of other money up', () => {
    expect(usdMicrosAt(table, { asset: 'EURC', units: 1n })).toEqual({ usdMicros: 2n, rate: '1.0705' })
    expect(usdMicrosAt(table, { asset: 'INR', units: 100n })).toEqual({
      usdMicros: 11_995n,
      rate: '0.011994465',
    })
  })

  it('never values a split spend below the whole', () => {
    const units = fc.bigInt({ min: 1n, max: 10n ** 18n })
    fc.assert(
      fc.property(units, units, fc.constantFrom('EURC', 'EUR', 'INR', 'USDC'), (one, other, asset) => {
        const worth = (count: bigint) => usdMicrosAt(table, { asset, units: count }).usdMicros
        expect(worth(one) + worth(other)).toBeGreaterThanOrEqual(worth(one + other))
      }),
    )
  })

  it('fails if the table lacks the currency', () => {
    expect(() => usdMicrosAt(table, { asset: 'GBP', units: 1n })).toThrow(Failure)
  })
})
