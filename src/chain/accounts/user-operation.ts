/**
 * Operations of a Safe: the data to sign, and the form for the EntryPoint.
 * @see https://eips.ethereum.org/EIPS/eip-4337
 */
import {
  concat,
  encodeAbiParameters,
  encodeFunctionData,
  hashTypedData,
  keccak256,
  numberToHex,
  pad,
  prepareEncodeFunctionData,
  slice,
  stringToHex,
  zeroAddress,
} from 'viem'
import type {
  Address,
  BurnTerms,
  Hex,
  SignableOperation,
  TokenAddresses,
  WalletCall,
} from '../../providers/chain/port.ts'
import { bridgeDeskAbi, entryPointAbi, safeAbi, swapDeskAbi, tokenAbi } from '../contracts/abi.ts'
import { type AccountContracts, addressIn, lowerCaseAddress } from '../rpc/networks.ts'
import { setAllowanceCall, swapOwnerCall } from './wallets.ts'

/** Functions that every operation calls: finding one hashes its signature. */
const transferFunction = prepareEncodeFunctionData({ abi: tokenAbi, functionName: 'transfer' })
const executeFunction = prepareEncodeFunctionData({
  abi: safeAbi,
  functionName: 'executeUserOpWithErrorString',
})
const handleOpsFunction = prepareEncodeFunctionData({ abi: entryPointAbi, functionName: 'handleOps' })

/** Members covered by the module's EIP-712 signature. */
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

/** Maximum gas of a call: a token's transfer behind a proxy, plus the allowance module. */
const CALL_GAS = 300_000n
/** Maximum gas of a hand-over: a price for each token of the chain, three allowances, a module and an owner. */
const HAND_OVER_GAS = 500_000n
/** Maximum gas for verifying the owner's signature; without a precompile, a passkey's needs a Solidity verifier. */
const VERIFICATION_GAS = { key: 200_000n, passkey: 700_000n } as const
/** Maximum gas of a swap: a route may pass through several markets. */
const SWAP_GAS = 1_500_000n
/** Gas of the EntryPoint per operation. */
const OVERHEAD_GAS = 60_000n

/**
 * A call made by a Safe.
 * @property byDelegate runs the code of `to` in the Safe's context (delegatecall). @property gas more than calls usually need.
 */
export interface SafeCall {
  readonly to: Address
  readonly data: Hex
  readonly byDelegate?: boolean
  readonly gas?: bigint
}

/** Contracts that an operation's hashes name, with their chain. */
export interface OperatingContracts extends Pick<AccountContracts, 'module' | 'entryPoint'> {
  readonly chainId: number
}

/** Content of an operation. Its fees are zero, because the sponsor pays for the enclosing transaction. */
export interface OperationPlan {
  readonly safe: Address
  /** Its hash is the nonce key with sequence 0, so that an id is executed only once. */
  readonly id: string
  readonly call: SafeCall
  readonly validUntil: Date
  readonly signer: keyof typeof VERIFICATION_GAS
}

/** An operation in the EntryPoint's format. @property gas maximum share of the transaction's gas. */
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

/** Computes the full nonce of an id: the hash as its 192-bit key, and sequence 0. */
export function toNonce(id: string): bigint {
  return BigInt(slice(keccak256(stringToHex(id)), 0, 24)) << 64n
}

/**
 * Converts a wallet's call to a call of its Safe. The destination may be in any letter case; the caller checks
 * checksums.
 */
export function toSafeCall(
  {
    contracts,
    tokens,
    delegate,
    safe,
  }: { contracts: AccountContracts; tokens: TokenAddresses; delegate: Address; safe: Address },
  call: WalletCall,
): SafeCall {
  if (call.kind === 'swap' && call.route.burn !== undefined) {
    const args = [buildBurnOrder(tokens, call, call.route.burn)] as const
    const data = encodeFunctionData({ abi: bridgeDeskAbi, functionName: 'bridgeFromSafe', args })
    return buildDeskCall(contracts.bridgeDesk, data)
  }
  if (call.kind === 'swap') {
    const args = [buildSwapOrder(tokens, call, safe)] as const
    const data = encodeFunctionData({ abi: swapDeskAbi, functionName: 'swapFromSafe', args })
    return buildDeskCall(contracts.swapDesk, data)
  }
  if (call.kind === 'allowance')
    return { to: contracts.allowances, data: setAllowanceCall(delegate, call.agentId, call.dailyMicros) }
  if (call.kind === 'owner') return { to: safe, data: swapOwnerCall(call.from, call.to) }
  const args = [lowerCaseAddress(call.to), call.units] as const
  return {
    to: addressIn(tokens, call.token),
    data: encodeFunctionData({ ...transferFunction, args }),
  }
}

/** Builds what the desk is to do. @param receiver wallet that gets what was bought, and what was not sold. */
export function buildSwapOrder(
  tokens: TokenAddresses,
  { token, units, route }: Extract<WalletCall, { kind: 'swap' }>,
  receiver: Address,
) {
  return {
    sell: addressIn(tokens, token),
    units,
    buy: addressIn(tokens, route.buy),
    minReceived: route.minReceived,
    receiver,
    target: route.target,
    spender: route.spender ?? zeroAddress,
    data: route.data,
  }
}

/** Builds what the bridge desk is to burn. */
export function buildBurnOrder(
  tokens: TokenAddresses,
  { token, units, route }: Extract<WalletCall, { kind: 'swap' }>,
  { domain, minFinality }: BurnTerms,
) {
  return {
    token: addressIn(tokens, token),
    units,
    messenger: route.target,
    domain,
    maxFee: units - route.minReceived,
    minFinality,
  }
}

/** Builds the call by which a Safe runs a desk's code: it pays the desk, and the desk does the rest. */
export function buildDeskCall(to: Address, data: Hex): SafeCall {
  return { to, data, byDelegate: true, gas: SWAP_GAS }
}

/** Builds the data for the Safe's owner to sign. */
export function buildSignable(contracts: OperatingContracts, plan: OperationPlan): SignableOperation {
  const nonce = toNonce(plan.id)
  const message = {
    safe: plan.safe,
    nonce: nonce.toString(),
    initCode: '0x',
    callData: encodeCallData(plan.call),
    verificationGasLimit: VERIFICATION_GAS[plan.signer].toString(),
    callGasLimit: chooseCallGas(plan.call).toString(),
    preVerificationGas: '0',
    maxPriorityFeePerGas: '0',
    maxFeePerGas: '0',
    paymasterAndData: '0x',
    validAfter: 0,
    validUntil: toSeconds(plan.validUntil),
    entryPoint: contracts.entryPoint,
  } as const
  const domain = { chainId: contracts.chainId, verifyingContract: contracts.module }
  const typedData = { domain, types: safeOpTypes, primaryType: 'SafeOp', message } as const
  const hash = hashTypedData({
    ...typedData,
    message: {
      ...message,
      nonce,
      verificationGasLimit: VERIFICATION_GAS[plan.signer],
      callGasLimit: chooseCallGas(plan.call),
      preVerificationGas: 0n,
      maxPriorityFeePerGas: 0n,
      maxFeePerGas: 0n,
    },
  })
  return { hash, typedData }
}

/** Adds the signature to an operation. @param signature in the format of Safe 1.4.1. */
export function packOperation(plan: OperationPlan, signature: Hex): PackedOperation {
  const verificationGas = VERIFICATION_GAS[plan.signer]
  const callGas = chooseCallGas(plan.call)
  return {
    gas: verificationGas + callGas + OVERHEAD_GAS,
    packed: {
      sender: plan.safe,
      nonce: toNonce(plan.id),
      initCode: '0x',
      callData: encodeCallData(plan.call),
      accountGasLimits: concat([
        numberToHex(verificationGas, { size: 16 }),
        numberToHex(callGas, { size: 16 }),
      ]),
      preVerificationGas: 0n,
      gasFees: pad('0x', { size: 32 }),
      paymasterAndData: '0x',
      // Six bytes each of validAfter (always zero) and validUntil precede the signature.
      signature: concat([
        pad('0x', { size: 6 }),
        numberToHex(toSeconds(plan.validUntil), { size: 6 }),
        signature,
      ]),
    },
  }
}

/** Computes the EntryPoint's hash of an operation, which does not cover the signature with its validity period. */
export function hashOperation(
  { entryPoint, chainId }: Pick<OperatingContracts, 'entryPoint' | 'chainId'>,
  plan: OperationPlan,
): Hex {
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
      [keccak256(encoded), entryPoint, BigInt(chainId)],
    ),
  )
}

/** Builds the transaction that executes operations through the EntryPoint. */
export function handleOpsCall(
  entryPoint: Address,
  beneficiary: Address,
  operations: readonly PackedOperation[],
): { to: Address; data: Hex; gas: bigint } {
  const args = [operations.map(({ packed }) => packed), beneficiary] as const
  return {
    to: entryPoint,
    data: encodeFunctionData({ ...handleOpsFunction, args }),
    gas: operations.reduce((sum, { gas }) => sum + gas, OVERHEAD_GAS),
  }
}

function chooseCallGas({ byDelegate = false, gas }: SafeCall): bigint {
  return gas ?? (byDelegate ? HAND_OVER_GAS : CALL_GAS)
}

function encodeCallData({ to, data, byDelegate = false }: SafeCall): Hex {
  const args = [to, 0n, data, byDelegate ? 1 : 0] as const
  return encodeFunctionData({ ...executeFunction, args })
}

function toSeconds(moment: Date): number {
  return Math.floor(moment.getTime() / 1000)
}
