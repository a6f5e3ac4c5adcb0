/**
 * Payment channels of x402 `batch-settlement`, as their contract sees them: the same addresses on every chain, EIP-712 typed data, ids.
 * @see https://github.com/coinbase/x402/tree/main/specs/schemes
 */
import { concat, domainSeparator, hashTypedData, keccak256, numberToHex, stringToHex } from 'viem'
import type { Address, Hex } from './chain/port.ts'

/** The contract of the channels, and what brings EIP-3009 deposits into them. */
export const channelsAddress: Address = '0x4020074e9dF2ce1deE5A9C1b5c3f541D02a10003'
export const depositCollectorAddress: Address = '0x4020806089470a89826cB9fB1f4059150b550004'

/**
 * Terms of a channel, which are its identity.
 * @property payerAuthorizer signs the vouchers. @property receiverAuthorizer signs the seller's refunds and claims.
 * @property withdrawDelay seconds in which the seller may still claim, once the payer withdraws alone.
 */
export interface ChannelConfig {
  readonly payer: Address
  readonly payerAuthorizer: Address
  readonly receiver: Address
  readonly receiverAuthorizer: Address
  readonly token: Address
  readonly withdrawDelay: number
  readonly salt: Hex
}

/** The same in an ABI, for `parseAbi`. */
export const channelStruct =
  'struct ChannelConfig { address payer; address payerAuthorizer; address receiver; address receiverAuthorizer; address token; uint40 withdrawDelay; bytes32 salt; }'

export const channelTypes = {
  ChannelConfig: [
    { name: 'payer', type: 'address' },
    { name: 'payerAuthorizer', type: 'address' },
    { name: 'receiver', type: 'address' },
    { name: 'receiverAuthorizer', type: 'address' },
    { name: 'token', type: 'address' },
    { name: 'withdrawDelay', type: 'uint40' },
    { name: 'salt', type: 'bytes32' },
  ],
  Voucher: [
    { name: 'channelId', type: 'bytes32' },
    { name: 'maxClaimableAmount', type: 'uint128' },
  ],
  Refund: [
    { name: 'channelId', type: 'bytes32' },
    { name: 'nonce', type: 'uint256' },
    { name: 'amount', type: 'uint128' },
  ],
  ClaimBatch: [{ name: 'claims', type: 'ClaimEntry[]' }],
  ClaimEntry: [
    { name: 'channelId', type: 'bytes32' },
    { name: 'maxClaimableAmount', type: 'uint128' },
    { name: 'totalClaimed', type: 'uint128' },
  ],
} as const

/** EIP-712 domain of channels, vouchers and refunds. */
export function channelDomain(chainId: number) {
  return {
    name: 'x402 Batch Settlement',
    version: '1',
    chainId,
    verifyingContract: channelsAddress,
  } as const
}

/** Never stale: a configuration is not changed. */
const hashes = new WeakMap<ChannelConfig, { readonly chainId: number; readonly hash: Hex }>()

/** Computes a channel's id: 32 bytes. */
export function hashChannel(config: ChannelConfig, chainId: number): Hex {
  const known = hashes.get(config)
  if (known?.chainId === chainId) return known.hash
  const hash = hashTypedData({
    domain: channelDomain(chainId),
    types: channelTypes,
    primaryType: 'ChannelConfig',
    message: config,
  })
  hashes.set(config, { chainId, hash })
  return hash
}

const voucherType = keccak256(stringToHex('Voucher(bytes32 channelId,uint128 maxClaimableAmount)'))
const separators = new Map<number, Hex>()

/** Computes what is signed for a voucher: its EIP-712 hash, without hashing again what all vouchers of a chain share. */
export function hashVoucher(channelId: Hex, cumulative: bigint, chainId: number): Hex {
  const separator = separators.get(chainId) ?? domainSeparator({ domain: channelDomain(chainId) })
  separators.set(chainId, separator)
  const struct = keccak256(concat([voucherType, channelId, numberToHex(cumulative, { size: 32 })]))
  return keccak256(concat(['0x1901', separator, struct]))
}
