import { describe, expect, it } from 'vitest'
import { structuringOf, thresholdsOf, velocityOf } from '../../../policies/aml/limits.ts'
import { defaultStructuring } from '../../../policies/aml/structuring.ts'
import { defaultVelocity } from '../../../policies/aml/velocity.ts'
import { defaultThresholds } from '../../../policies/travel-rule.ts'

describe('the limits of a deployment', () => {
  it('are read from the texts of its configuration', () => {
    expect(velocityOf('50000/86400, 10000/600/10')).toEqual(defaultVelocity)
    expect(velocityOf('0.50/1')).toEqual([{ seconds: 1, maxUsdMicros: 500_000n, minCount: 1 }])
    expect(structuringOf('3/86400/80')).toEqual(defaultStructuring)
    expect(thresholdsOf('default:1000,US:3000,EU:0')).toEqual(defaultThresholds)
  })

  it('keep the law’s thresholds where they name none', () => {
    const thresholds = thresholdsOf('CH:0')
    expect(thresholds?.get('CH')).toBe(0n)
    expect(thresholds?.get('US')).toBe(3_000_000_000n)
  })

  it.each(['', '50000', '0/0', '-1/60', '1/60/0', '1e5/60', '1/60,', '1.234/60'])(
    'are no velocity in "%s"',
    (text) => expect(velocityOf(text)).toBeUndefined(),
  )
  it.each(['', '1/60/80', '3/60', '3/60/0', '3/60/100', '3/0/80'])('are no structuring in "%s"', (text) =>
    expect(structuringOf(text)).toBeUndefined(),
  )
  it.each(['', '1000', 'default', 'us:1', 'USA:1', 'US:-1', 'US:1,'])('are no thresholds in "%s"', (text) =>
    expect(thresholdsOf(text)).toBeUndefined(),
  )
})
