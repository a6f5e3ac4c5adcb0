import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseThresholds } from '../../policies/aml/limits.ts'
import { defaultThresholds, judgeTravelRule, type TravelRuleValue } from '../../policies/travel-rule.ts'

const whole = (amount: number) => BigInt(amount) * 1_000_000n
const dollars = (amount: bigint): TravelRuleValue => ({
  currency: 'USD',
  micros: amount,
  usdMicros: amount,
})
const judge = (country: string | null, value = dollars(whole(1_000)), thresholds = defaultThresholds) =>
  judgeTravelRule({ country, value, isOwnWallet: false }, thresholds)

describe('the Travel Rule', () => {
  it('applies from 1,000 USD or EUR by default', () => {
    for (const currency of ['USD', 'EUR'] as const) {
      const at = (micros: bigint) => judge(null, { currency, micros, usdMicros: micros * 2n })
      expect(at(whole(1_000))).toEqual({
        isRequired: true,
        reason: 'at_or_above_threshold',
        amount: whole(1_000),
        threshold: { micros: whole(1_000), currency, isInDollars: false },
      })
      expect(at(whole(1_000) - 1n)).toMatchObject({ isRequired: false, reason: 'below_threshold' })
    }
  })

  it('applies from 3,000 US dollars in the United States, for any token', () => {
    expect(judge('US', dollars(whole(2_999)))).toMatchObject({ isRequired: false })
    expect(judge('US', dollars(whole(3_000)))).toMatchObject({ isRequired: true })
    const euros = { currency: 'EUR' as const, micros: whole(2_800), usdMicros: whole(3_001) }
    expect(judge('US', euros)).toMatchObject({
      isRequired: true,
      amount: whole(3_001),
      threshold: { micros: whole(3_000), currency: 'USD' },
    })
  })

  it.each(['DE', 'FR', 'IE', 'NO'])('applies to every transfer from %s', (country) => {
    expect(judge(country, dollars(1n)).isRequired).toBe(true)
  })

  it.each(['GB', 'CH', 'JP', 'IN', 'XX'])('applies with the default in %s', (country) => {
    expect(judge(country).threshold.micros).toBe(whole(1_000))
  })

  it('prefers a country’s own threshold to the Union’s and to the default', () => {
    const thresholds = parseThresholds('DE:500,GB:0,default:2000') ?? new Map()
    expect(
      ['DE', 'FR', 'GB', null].map((country) => judge(country, undefined, thresholds).threshold.micros),
    ).toEqual([whole(500), 0n, 0n, whole(2_000)])
    expect(judge(null, dollars(1n), new Map())).toMatchObject({ isRequired: true })
  })

  it('does not apply to internal transfers', () => {
    fc.assert(
      fc.property(fc.option(fc.constantFrom('US', 'DE', 'GB')), fc.bigInt({ min: 1n }), (country, amount) => {
        const value = dollars(amount)
        const verdict = judgeTravelRule({ country, value, isOwnWallet: true }, defaultThresholds)
        expect(verdict).toMatchObject({ isRequired: false, reason: 'own_wallet' })
      }),
    )
  })

  it('is monotonic in the amount and in the threshold', () => {
    const amounts = fc.bigInt({ min: 1n, max: whole(10_000) })
    fc.assert(
      fc.property(
        fc.option(fc.constantFrom('US', 'DE', 'GB')),
        amounts,
        amounts,
        fc.constantFrom('default', 'US', 'EU'),
        (country, amount, more, lowered) => {
          if (!judge(country, dollars(amount)).isRequired) return
          expect(judge(country, dollars(amount + more)).isRequired).toBe(true)
          const lower = new Map([...defaultThresholds, [lowered, 0n] as const])
          expect(judge(country, dollars(amount), lower).isRequired).toBe(true)
        },
      ),
    )
  })
})
