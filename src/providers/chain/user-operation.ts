/** A transfer as a signed user operation of its Safe. @see https://eips.ethereum.org/EIPS/eip-4337 */
import { concat, encodeFunctionData, keccak256, numberToHex, pad, slice, stringToHex } from 'viem'
import type { LocalAccount } from 'viem/accounts'
import type { Address, ChainTransfer, Hex } from '../chain.ts'
import { entryPointAbi, safeAbi, tokenAbi } from './abi.ts'
import { type AccountContracts, baseSepolia, plainAddress, type TokenAddresses } from './networks.ts'

/** What the module's EIP-712 signature covers. */
const safeOpTypes = {
  SafeOp: [
    { name: 'safe', type: 'address' },
    { name: 'nonce', type: 'uint256' },
    { name: 'initCode', type: 'bytes' },
    { name: 'callData', type: 'bytes' },
    { name: 'verificationGasLimit', type: 'uint128' },
    { name: 'callGasLimit', type: 'uint128' },
    { name: 'preVerificationGas', type: 'uint256' },
    { name: 'maxPriorityFeePerGas', type: 'uint128' },
    { name: 'maxFeePerGas', type: 'uint128' },
    { name: 'paymasterAndData', type: 'bytes' },
    { name: 'validAfter', type: 'uint48' },
    { name: 'validUntil', type: 'uint48' },
    { name: 'entryPoint', type: 'address' },
  ],
} as const

/** Gas that a token's transfer may use, also behind a proxy. */
const CALL_GAS = 200_000n
/** Gas for checking one owner's signature, and for creating the Safe before that. */
const VERIFICATION_GAS = 300_000n
const CREATION_GAS = 900_000n
/** What the EntryPoint itself needs beside the operation. */
const OVERHEAD_GAS = 150_000n

/** Who makes operations: the contracts, the owner's key, and where the sponsor's refund (nothing) goes. */
export interface OperationMaker {
  readonly contracts: AccountContracts
  readonly tokens: TokenAddresses
  readonly owner: LocalAccount
  readonly beneficiary: Address
}

/** An operation ready to be broadcast. @property gas the most that the whole transaction may use. */
export interface HandleOpsCall {
  readonly to: Address
  readonly data: Hex
  readonly gas: bigint
}

/** The nonce of a transfer: its id's hash as the 192-bit key, sequence 0, so that it can be executed once only. */
function nonceKeyOf(transferId: string): bigint {
  return BigInt(slice(keccak256(stringToHex(transferId)), 0, 24))
}

/** The full nonce: key and sequence 0. */
export function nonceOf(transferId: string): bigint {
  return nonceKeyOf(transferId) << 64n
}

/** The token's call that the Safe makes. The destination counts in any case of letters; its checksum is the caller's. */
export function transferCall({ to, units }: ChainTransfer): Hex {
  return encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [plainAddress(to), units] })
}

/** Signs a transfer. Its fees are zero: the sponsor pays the transaction around it. @param initCode 0x once deployed. */
export async function signOperation(
  { contracts, tokens, owner, beneficiary }: OperationMaker,
  transfer: ChainTransfer,
  safe: Address,
  initCode: Hex,
): Promise<HandleOpsCall> {
  const call = [tokens[transfer.token], 0n, transferCall(transfer), 0] as const
  const callData = encodeFunctionData({
    abi: safeAbi,
    functionName: 'executeUserOpWithErrorString',
    args: call,
  })
  const nonce = nonceOf(transfer.transferId)
  const verificationGas = initCode === '0x' ? VERIFICATION_GAS : VERIFICATION_GAS + CREATION_GAS
  const signature = await owner.signTypedData({
    domain: { chainId: baseSepolia.id, verifyingContract: contracts.module },
    types: safeOpTypes,
    primaryType: 'SafeOp',
    message: {
      safe,
      nonce,
      initCode,
      callData,
      verificationGasLimit: verificationGas,
      callGasLimit: CALL_GAS,
      preVerificationGas: 0n,
      maxPriorityFeePerGas: 0n,
      maxFeePerGas: 0n,
      paymasterAndData: '0x',
      validAfter: 0,
      validUntil: 0,
      entryPoint: contracts.entryPoint,
    },
  })
  const operation = {
    sender: safe,
    nonce,
    initCode,
    callData,
    accountGasLimits: concat([
      numberToHex(verificationGas, { size: 16 }),
      numberToHex(CALL_GAS, { size: 16 }),
    ]),
    preVerificationGas: 0n,
    gasFees: pad('0x', { size: 32 }),
    paymasterAndData: '0x',
    // Before the signature: validAfter and validUntil, six bytes each, zero for "always".
    signature: concat([pad('0x', { size: 12 }), signature]),
  } as const
  return {
    to: contracts.entryPoint,
    data: encodeFunctionData({
      abi: entryPointAbi,
      functionName: 'handleOps',
      args: [[operation], beneficiary],
    }),
    gas: verificationGas + CALL_GAS + OVERHEAD_GAS,
  }
}
