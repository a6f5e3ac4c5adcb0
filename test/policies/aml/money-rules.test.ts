/** Velocity, structuring and the missing Travel Rule data: rules about money, one by one and for any amounts. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bandUnder, defaultStructuring, screenStructuring } from '../../../policies/aml/structuring.ts'
import { screenTravelRule } from '../../../policies/aml/travel-rule-missing.ts'
import { defaultVelocity, screenVelocity } from '../../../policies/aml/velocity.ts'

const usd = (whole: number) => BigInt(whole) * 1_000_000n
const none = { usdMicros: 0n, count: 0 }
const micros = fc.bigInt({ min: 0n, max: usd(200_000) })
const sent = fc.record({ usdMicros: micros, count: fc.integer({ min: 0, max: 100_000 }) })

describe('velocity', () => {
  const judge = (amount: bigint, day = none, minutes = none) =>
    screenVelocity(amount, defaultVelocity, [day, minutes]).result

  it('lets 50,000 USD a day go, and no cent more', () => {
    expect(judge(usd(50_000))).toBe('clear')
    expect(judge(usd(50_000) + 1n)).toBe('review')
    expect(judge(1n, { usdMicros: usd(50_000), count: 1 })).toBe('review')
  })

  it('takes ten transfers in ten minutes for a burst only where they exceed 10,000 USD together', () => {
    const nine = { usdMicros: usd(9_000), count: 9 }
    expect(judge(usd(1_000), nine, nine)).toBe('clear')
    expect(judge(usd(1_001), nine, nine)).toBe('review')
    expect(judge(usd(1_001), nine, { ...nine, count: 8 })).toBe('clear')
  })

  it('is never hit by a number of small transfers', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1_000_000 }), (count) => {
        const small = { usdMicros: BigInt(count) * 1_000n, count }
        expect(judge(1_000n, small, small)).toBe('clear')
      }),
    )
  })

  it('only gets stricter with what was sent before, and with a lower limit', () => {
    fc.assert(
      fc.property(micros, sent, sent, micros, (amount, day, minutes, more) => {
        if (judge(amount, day, minutes) === 'clear') return
        expect(judge(amount + more, day, minutes)).toBe('review')
        expect(judge(amount, { usdMicros: day.usdMicros + more, count: day.count + 1 }, minutes)).toBe(
          'review',
        )
        const lower = defaultVelocity.map((window) => ({ ...window, maxUsdMicros: window.maxUsdMicros - 1n }))
        expect(screenVelocity(amount, lower, [day, minutes]).result).toBe('review')
      }),
    )
  })

  it('takes a window that nothing is known of for exceeded', () => {
    expect(screenVelocity(1n, defaultVelocity, [none])).toEqual({ result: 'review', lists: ['velocity'] })
  })
})

describe('structuring', () => {
  const band = bandUnder(usd(1_000), defaultStructuring)
  const judge = (amount: bigint, before: number) =>
    screenStructuring(amount, band, before, defaultStructuring).result

  it('wants a review of the third transfer that stays just under the threshold', () => {
    expect([0, 1, 2, 3].map((before) => judge(usd(900), before))).toEqual([
      'clear',
      'clear',
      'review',
      'review',
    ])
    expect(screenStructuring(usd(900), band, 2, defaultStructuring).lists).toEqual(['structuring'])
  })

  it('looks at 80 % of the threshold and more, and not at the threshold itself', () => {
    expect([usd(800) - 1n, usd(800), usd(1_000) - 1n, usd(1_000)].map((amount) => judge(amount, 9))).toEqual([
      'clear',
      'review',
      'review',
      'clear',
    ])
  })

  it('has nothing to look at where every transfer carries data', () => {
    fc.assert(
      fc.property(micros, fc.nat(), (amount, before) => {
        const nothing = bandUnder(0n, defaultStructuring)
        expect(screenStructuring(amount, nothing, before, defaultStructuring).result).toBe('clear')
      }),
    )
  })
})

it('wants a review of a transfer without the data that it needs, and of no other', () => {
  const judge = (isRequired: boolean, isOnRecord: boolean) => screenTravelRule({ isRequired, isOnRecord })
  expect(judge(true, false)).toEqual({ result: 'review', lists: ['travel_rule'] })
  expect([judge(true, true), judge(false, false), judge(false, true)].map(({ result }) => result)).toEqual([
    'clear',
    'clear',
    'clear',
  ])
})
