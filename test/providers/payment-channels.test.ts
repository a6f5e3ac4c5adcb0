import { hashTypedData } from 'viem'
import { expect, it } from 'vitest'
import { channelDomain, channelTypes, hashVoucher } from '../../src/providers/payment-channels.ts'

it('hashes vouchers as EIP-712 says, on any chain', () => {
  const channelId = `0x${'ab'.repeat(32)}` as const
  for (const [chainId, maxClaimableAmount] of [
    [84_532, 1n],
    [8_453, 500n],
    [84_532, 2n ** 128n - 1n],
  ] as const)
    expect(hashVoucher(channelId, maxClaimableAmount, chainId)).toBe(
      hashTypedData({
        domain: channelDomain(chainId),
        types: channelTypes,
        primaryType: 'Voucher',
        message: { channelId, maxClaimableAmount },
      }),
    )
})
