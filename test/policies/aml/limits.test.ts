import { describe, expect, it } from 'vitest'
import { parseStructuring, parseThresholds, parseVelocity } from '../../../policies/aml/limits.ts'
import { defaultStructuring } from '../../../policies/aml/structuring.ts'
import { defaultVelocity } from '../../../policies/aml/velocity.ts'
import { defaultThresholds } from '../../../policies/travel-rule.ts'

describe('the limits of a deployment', () => {
  it('are parsed from the configuration’s texts', () => {
    expect(parseVelocity('50000/86400, 10000/600/10')).toEqual(defaultVelocity)
    expect(parseVelocity('0.50/1')).toEqual([{ seconds: 1, maxUsdMicros: 500_000n, minCount: 1 }])
    expect(parseVelocity('999999999999/9999999/99999')).toEqual([
      { seconds: 9_999_999, maxUsdMicros: 999_999_999_999_000_000n, minCount: 99_999 },
    ])
    expect(parseStructuring('3/86400/80')).toEqual(defaultStructuring)
    expect(parseStructuring(' 9999/9999999/99 ')).toEqual({
      count: 9_999,
      seconds: 9_999_999,
      fromPercent: 99,
    })
    expect(parseStructuring('10/1/1')).toEqual({ count: 10, seconds: 1, fromPercent: 1 })
    expect(parseThresholds('US: 1')).toBeUndefined()
    expect(parseThresholds(' US:1.50 , CH:2 ')?.get('US')).toBe(1_500_000n)
    expect(parseThresholds('default:1000,US:3000,EU:0')).toEqual(defaultThresholds)
  })

  it('default to the legal thresholds', () => {
    const thresholds = parseThresholds('CH:0')
    expect(thresholds?.get('CH')).toBe(0n)
    expect(thresholds?.get('US')).toBe(3_000_000_000n)
  })

  it.each([
    '',
    '50000',
    '0/0',
    '-1/60',
    '1/60/0',
    '1e5/60',
    '1/60,',
    '1.234/60',
    '1./60',
    '1/60/',
    '1/060',
    '1/60/01',
    'x1/60',
    '1/60x',
    '1/60/1/1',
    '1/6x',
    '1/60/1x',
    '1000000000000/60',
    '1/10000000',
    '1/60/100000',
  ])('reject the velocity "%s"', (text) => expect(parseVelocity(text)).toBeUndefined())
  it.each([
    '',
    '1/60/80',
    '3/60',
    '3/60/0',
    '3/60/100',
    '3/0/80',
    '0/60/80',
    '3/60/8x',
    'x3/60/80',
    '03/60/80',
    '3/60/08',
    '10000/60/80',
    '3/10000000/80',
    '1x/6/8',
    '3/6x/8',
    '3/60/80x',
  ])('reject the structuring "%s"', (text) => expect(parseStructuring(text)).toBeUndefined())
  it.each([
    '',
    '1000',
    'default',
    'us:1',
    'USA:1',
    'US:-1',
    'US:1,',
    'xUS:1',
    'US:1x',
    'US:1.234',
    'US:1.',
    'US:',
    'USdefault:1',
    'US:1000000000000',
  ])('reject the thresholds "%s"', (text) => expect(parseThresholds(text)).toBeUndefined())
})
