/** Outcomes of cancelled purchases on a chain whose latest blocks may be replaced. */
import { describe, expect, it } from 'vitest'
import { purchaseOutcome } from '../../../src/books/evidence/purchase-outcome.ts'

const purchase = {
  token: '0xa',
  from: '0xb',
  to: '0xc',
  units: 1n,
  nonce: '0x1',
  validBefore: new Date('2026-11-22T12:00:00Z'),
} as const

/** @param isSafe the cancellation is in a block that stays. */
const chainWith = (isSafe: boolean) => ({
  authorizationState: async () => ({ status: 'canceled' }) as const,
  isAuthorizationOver: async () => isSafe,
  transaction: async () => undefined,
})

describe('a cancelled purchase', () => {
  it('may still be paid while the block of its cancellation can be replaced', async () => {
    expect(await purchaseOutcome(chainWith(false), purchase)).toEqual({ status: 'canceling' })
    expect(await purchaseOutcome(chainWith(true), purchase)).toEqual({ status: 'canceled' })
  })
})
