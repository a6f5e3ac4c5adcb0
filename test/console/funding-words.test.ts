import { describe, expect, it } from 'vitest'
import { describeMove } from '../../src/console/words/funding.ts'

const move = { from: 'base-sepolia', to: 'arbitrum-sepolia', sent: '7.000842', fee: '0.000842', etaSec: 2 }

describe('a move before a payment', () => {
  it('tells where the money is, how long it takes and what it costs', () => {
    expect(describeMove(move)).toBe(
      '7.000842 USDC moves from Base Sepolia to Arbitrum Sepolia first, in about 2 seconds. Moving it costs at most 0.000842 USDC, which counts on the budget.',
    )
  })

  it('tells minutes, and that it is free', () => {
    expect(describeMove({ ...move, fee: '0', etaSec: 1_140 })).toBe(
      '7.000842 USDC moves from Base Sepolia to Arbitrum Sepolia first, in about 19 minutes. Moving it costs nothing.',
    )
  })
})
