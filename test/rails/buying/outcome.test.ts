/** Outcomes of cancelled purchases on a chain whose latest blocks may be replaced. */
import { describe, expect, it } from 'vitest'
import { purchaseOutcome } from '../../../src/books/evidence/purchase-outcome.ts'

const purchase = {
  scheme: 'exact',
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
  permitState: async () => ({ status: 'canceled' }) as const,
  escrowState: async () => ({ isCollected: false, capturable: 0n, refundable: 0n }),
  isPermitOver: async () => isSafe,
  transaction: async () => undefined,
})

describe('a cancelled purchase', () => {
  it('may still be paid while the block of its cancellation can be replaced', async () => {
    expect(await purchaseOutcome(chainWith(false), purchase)).toEqual({ status: 'canceling' })
    expect(await purchaseOutcome(chainWith(true), purchase)).toEqual({ status: 'canceled' })
  })

  it('of a maximum ends as one of a price does', async () => {
    const maximum = { ...purchase, scheme: 'upto' } as const
    expect(await purchaseOutcome(chainWith(false), maximum)).toEqual({ status: 'canceling' })
    expect(await purchaseOutcome(chainWith(true), maximum)).toEqual({ status: 'canceled' })
  })
})

describe('a settled maximum', () => {
  const purchase = {
    scheme: 'upto',
    token: '0xa',
    from: '0xb',
    to: '0xc',
    units: 10n,
    nonce: '0x1',
    validBefore: new Date('2026-11-22T12:00:00Z'),
  } as const
  const transfer = {
    token: '0xa',
    from: '0xb',
    to: '0xc',
    position: 0,
    operationHash: null,
    authorization: null,
  } as const
  const settledBy = (moved: { units: bigint; isUpto: boolean; to?: '0xd' }, succeeded = true) => ({
    ...chainWith(true),
    permitState: async () => ({ status: 'used', transactionHashes: ['0x2'] }) as const,
    transaction: async () =>
      ({
        hash: '0x2',
        blockNumber: 1n,
        succeeded,
        calldata: '0x',
        sent: [],
        delivered: [],
        transfers: [{ ...transfer, ...moved }],
      }) as const,
  })

  it('is paid as much as the proxy moved', async () => {
    expect(await purchaseOutcome(settledBy({ units: 7n, isUpto: true }), purchase)).toEqual({
      status: 'settled',
      transactionHash: '0x2',
      units: 7n,
    })
  })

  it('is unknown without the proxy’s own transfer to the payee within the maximum', async () => {
    for (const chain of [
      settledBy({ units: 7n, isUpto: false }),
      settledBy({ units: 11n, isUpto: true }),
      settledBy({ units: 7n, isUpto: true, to: '0xd' }),
      settledBy({ units: 7n, isUpto: true }, false),
    ])
      await expect(purchaseOutcome(chain, purchase)).rejects.toThrow('cannot be read')
  })
})
