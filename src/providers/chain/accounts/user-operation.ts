/** An operation of a Safe: what is signed, and what the EntryPoint takes. @see https://eips.ethereum.org/EIPS/eip-4337 */
import {
  concat,
  encodeAbiParameters,
  encodeFunctionData,
  hashTypedData,
  keccak256,
  numberToHex,
  pad,
  slice,
  stringToHex,
} from 'viem'
import type { Address, Hex, SignableOperation, WalletCall } from '../../chain.ts'
import { entryPointAbi, safeAbi, tokenAbi } from '../contracts/abi.ts'
import { type AccountContracts, baseSepolia, plainAddress, type TokenAddresses } from '../rpc/networks.ts'
import { setAllowanceCall } from './wallets.ts'

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

/** Gas that a call may use: a token's transfer behind a proxy, and the allowance module before it. */
const CALL_GAS = 300_000n
/** Gas for checking the owner's signature: a passkey's may cost a verifier in Solidity, where there is no precompile. */
const VERIFICATION_GAS = { key: 200_000n, passkey: 700_000n } as const
/** What the EntryPoint itself needs beside an operation. */
const OVERHEAD_GAS = 60_000n

/** What a Safe calls. @property byDelegate runs the code of `to` in the Safe's own name. */
export interface SafeCall {
  readonly to: Address
  readonly data: Hex
  readonly byDelegate?: boolean
}

/** What an operation is made of. Its fees are zero: the sponsor pays the transaction around it. */
export interface OperationPlan {
  readonly safe: Address
  /** Its hash is the nonce's key, sequence 0, so that the id can be executed once only. */
  readonly id: string
  readonly call: SafeCall
  readonly validUntil: Date
  readonly signer: keyof typeof VERIFICATION_GAS
}

/** An operation as the EntryPoint takes it. @property gas the most that it may use of a transaction. */
export interface PackedOperation {
  readonly gas: bigint
  readonly packed: {
    readonly sender: Address
    readonly nonce: bigint
    readonly initCode: Hex
    readonly callData: Hex
    readonly accountGasLimits: Hex
    readonly preVerificationGas: bigint
    readonly gasFees: Hex
    readonly paymasterAndData: Hex
    readonly signature: Hex
  }
}

/** The full nonce of an id: the hash as its 192-bit key, and sequence 0. */
export function nonceOf(id: string): bigint {
  return BigInt(slice(keccak256(stringToHex(id)), 0, 24)) << 64n
}

/** What a wallet's call is in the chain's terms. The destination counts in any case of letters; its checksum is the caller's. */
export function safeCallOf(
  { contracts, tokens, delegate }: { contracts: AccountContracts; tokens: TokenAddresses; delegate: Address },
  call: WalletCall,
): SafeCall {
  if (call.kind === 'allowance')
    return { to: contracts.allowances, data: setAllowanceCall(delegate, call.agentId, call.dailyMicros) }
  const args = [plainAddress(call.to), call.units] as const
  return {
    to: tokens[call.token],
    data: encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args }),
  }
}

/** What the Safe's owner signs. */
export function signableOf(
  contracts: Pick<AccountContracts, 'module' | 'entryPoint'>,
  plan: OperationPlan,
): SignableOperation {
  const message = {
    safe: plan.safe,
    nonce: nonceOf(plan.id).toString(),
    initCode: '0x',
    callData: callDataOf(plan.call),
    verificationGasLimit: VERIFICATION_GAS[plan.signer].toString(),
    callGasLimit: CALL_GAS.toString(),
    preVerificationGas: '0',
    maxPriorityFeePerGas: '0',
    maxFeePerGas: '0',
    paymasterAndData: '0x',
    validAfter: 0,
    validUntil: secondsOf(plan.validUntil),
    entryPoint: contracts.entryPoint,
  } as const
  const domain = { chainId: baseSepolia.id, verifyingContract: contracts.module }
  const typedData = { domain, types: safeOpTypes, primaryType: 'SafeOp', message } as const
  const hash = hashTypedData({
    ...typedData,
    message: {
      ...message,
      nonce: nonceOf(plan.id),
      verificationGasLimit: VERIFICATION_GAS[plan.signer],
      callGasLimit: CALL_GAS,
      preVerificationGas: 0n,
      maxPriorityFeePerGas: 0n,
      maxFeePerGas: 0n,
    },
  })
  return { hash, typedData }
}

/** The operation with its signature. @param signature as Safe 1.4.1 reads it. */
export function packOperation(plan: OperationPlan, signature: Hex): PackedOperation {
  const verificationGas = VERIFICATION_GAS[plan.signer]
  return {
    gas: verificationGas + CALL_GAS + OVERHEAD_GAS,
    packed: {
      sender: plan.safe,
      nonce: nonceOf(plan.id),
      initCode: '0x',
      callData: callDataOf(plan.call),
      accountGasLimits: concat([
        numberToHex(verificationGas, { size: 16 }),
        numberToHex(CALL_GAS, { size: 16 }),
      ]),
      preVerificationGas: 0n,
      gasFees: pad('0x', { size: 32 }),
      paymasterAndData: '0x',
      // Before the signature: validAfter (always) and validUntil, six bytes each.
      signature: concat([
        pad('0x', { size: 6 }),
        numberToHex(secondsOf(plan.validUntil), { size: 6 }),
        signature,
      ]),
    },
  }
}

/** The hash by which the EntryPoint knows an operation. Its signature, and the time in it, are not covered. */
export function operationHashOf(entryPoint: Address, plan: OperationPlan): Hex {
  const { packed } = packOperation(plan, '0x')
  const encoded = encodeAbiParameters(
    [
      { type: 'address' },
      { type: 'uint256' },
      { type: 'bytes32' },
      { type: 'bytes32' },
      { type: 'bytes32' },
      { type: 'uint256' },
      { type: 'bytes32' },
      { type: 'bytes32' },
    ],
    [
      packed.sender,
      packed.nonce,
      keccak256(packed.initCode),
      keccak256(packed.callData),
      packed.accountGasLimits,
      packed.preVerificationGas,
      packed.gasFees,
      keccak256(packed.paymasterAndData),
    ],
  )
  return keccak256(
    encodeAbiParameters(
      [{ type: 'bytes32' }, { type: 'address' }, { type: 'uint256' }],
      [keccak256(encoded), entryPoint, BigInt(baseSepolia.id)],
    ),
  )
}

/** The transaction that makes the EntryPoint execute operations. */
export function handleOpsCall(
  entryPoint: Address,
  beneficiary: Address,
  operations: readonly PackedOperation[],
): { to: Address; data: Hex; gas: bigint } {
  const args = [operations.map(({ packed }) => packed), beneficiary] as const
  return {
    to: entryPoint,
    data: encodeFunctionData({ abi: entryPointAbi, functionName: 'handleOps', args }),
    gas: operations.reduce((sum, { gas }) => sum + gas, OVERHEAD_GAS),
  }
}

function callDataOf({ to, data, byDelegate = false }: SafeCall): Hex {
  const args = [to, 0n, data, byDelegate ? 1 : 0] as const
  return encodeFunctionData({ abi: safeAbi, functionName: 'executeUserOpWithErrorString', args })
}

function secondsOf(moment: Date): number {
  return Math.floor(moment.getTime() / 1000)
}
