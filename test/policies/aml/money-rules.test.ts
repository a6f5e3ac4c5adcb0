/** The AML windows in which a transfer is judged and counted, and missing Travel Rule data. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { outflowWindows } from '../../../policies/aml/outflow-windows.ts'
import { bandBelow, defaultStructuring, isInBand } from '../../../policies/aml/structuring.ts'
import { screenTravelRule } from '../../../policies/aml/travel-rule-missing.ts'
import { defaultVelocity } from '../../../policies/aml/velocity.ts'

const usd = (whole: number) => BigInt(whole) * 1_000_000n
const rules = {
  velocity: defaultVelocity,
  structuring: defaultStructuring,
  band: bandBelow(usd(1_000), defaultStructuring),
}
const listWindows = (micros: bigint, changes: { isOwnWallet?: boolean; isOnRecord?: boolean } = {}) =>
  outflowWindows(
    { usdMicros: micros, amount: micros, isOwnWallet: false, isOnRecord: false, ...changes },
    rules,
  )
const findStructuring = (...args: Parameters<typeof listWindows>) =>
  listWindows(...args).find(({ rule }) => rule === 'structuring')

describe('velocity', () => {
  it('counts and judges every transfer, however small', () => {
    for (const usdMicros of [1n, usd(1) - 1n, usd(1)])
      expect(listWindows(usdMicros, { isOwnWallet: true, isOnRecord: true })).toEqual(
        defaultVelocity.map((window) => ({ rule: 'velocity', usdMicros, isJudged: true, ...window })),
      )
  })
})

describe('structuring', () => {
  it('covers 80 % of the threshold and more, below the threshold itself', () => {
    expect(
      [usd(800) - 1n, usd(800), usd(1_000) - 1n, usd(1_000)].map(
        (amount) => findStructuring(amount) !== undefined,
      ),
    ).toEqual([false, true, true, false])
    expect(findStructuring(usd(900))).toMatchObject({ seconds: 86_400, minCount: 3, maxUsdMicros: null })
  })

  it('counts transfers with a recorded beneficiary without judging them, and ignores internal ones', () => {
    expect(findStructuring(usd(900))?.isJudged).toBe(true)
    expect(findStructuring(usd(900), { isOnRecord: true })?.isJudged).toBe(false)
    expect(findStructuring(usd(900), { isOwnWallet: true })).toBeUndefined()
  })

  it('has no window when every transfer needs data', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: usd(200_000) }), (amount) => {
        expect(isInBand(amount, bandBelow(0n, defaultStructuring))).toBe(false)
      }),
    )
  })
})

it('requires a review of a transfer that lacks required data, and of no other', () => {
  const judge = (isRequired: boolean, isOnRecord: boolean) => screenTravelRule({ isRequired, isOnRecord })
  expect(judge(true, false)).toEqual({ result: 'review', lists: ['travel_rule'] })
  expect([judge(true, true), judge(false, false), judge(false, true)].map(({ result }) => result)).toEqual([
    'clear',
    'clear',
    'clear',
  ])
})
