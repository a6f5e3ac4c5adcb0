/** The escrow of the simulated chain: computes what `SandboxEscrow.sol` and `SandboxEscrowCollector.sol` would do. */
import {
  decodeFunctionData,
  encodeFunctionResult,
  getAddress,
  hashTypedData,
  parseAbi,
  zeroAddress,
} from 'viem'
import { signedPaymentTypes } from '../../core/base/signed-payment-types.ts'
import type { Address, Hex } from '../../providers/chain/port.ts'
import {
  deriveEscrowNonce,
  type EscrowPayment,
  escrowAddress,
  escrowCollectorAddress,
  escrowPaymentStruct,
  hashEscrowPayment,
} from '../../providers/payment-escrow.ts'
import { lowerCaseAddress } from '../rpc/networks.ts'
import { requireAuthorizing, tokenDomain } from './simulated-network.ts'
import { fakeAddress } from './simulated-state.ts'
import {
  authorizationMark,
  type CallContext,
  prepareWrite,
  requireSigned,
  type SimulatedCall,
} from './simulated-token.ts'

const abi = parseAbi([
  escrowPaymentStruct,
  'function authorize(PaymentInfo info, uint256 amount, address collector, bytes data)',
  'function charge(PaymentInfo info, uint256 amount, address collector, bytes data, uint16 feeBps, address feeReceiver)',
  'function capture(PaymentInfo info, uint256 amount, uint16 feeBps, address feeReceiver)',
  'function void(PaymentInfo info)',
  'function reclaim(PaymentInfo info)',
  'function refund(PaymentInfo info, uint256 amount, address collector, bytes data)',
  'function paymentState(bytes32 hash) view returns (bool hasCollectedPayment, uint120 capturableAmount, uint120 refundableAmount)',
  'function getHash(PaymentInfo info) view returns (bytes32)',
  'function getTokenStore(address operator) view returns (address)',
])

type Call = ReturnType<typeof decodeFunctionData<typeof abi>>

export function isEscrowContract(address: Address): boolean {
  return [escrowAddress, escrowCollectorAddress].some((one) => isSame(one, address))
}

/** Checks an encoded call of the escrow. @throws Error with the contract's reason when it would revert. */
export async function judgeEscrowCall(context: CallContext, data: Hex): Promise<SimulatedCall> {
  const call = decode(data)
  if (call === undefined) throw new Error('execution reverted')
  const { state } = context
  switch (call.functionName) {
    case 'paymentState': {
      const { isCollected, capturable, refundable } = state.escrow(call.args[0])
      return returns('paymentState', [isCollected, capturable, refundable])
    }
    case 'getHash':
      return returns('getHash', hashEscrowPayment(call.args[0], state.network.chainId))
    case 'getTokenStore':
      return returns('getTokenStore', findStore(call.args[0]))
    case 'authorize':
    case 'charge':
      return judgeCollection(context, call)
    case 'capture':
      return judgeCapture(context, call.args)
    case 'void':
    case 'reclaim':
      return judgeReturn(context, call)
    case 'refund':
      return judgeRefund(context, call.args)
  }
}

async function judgeCollection(
  context: CallContext,
  call: Extract<Call, { functionName: 'authorize' | 'charge' }>,
): Promise<SimulatedCall> {
  const { state, clock, caller } = context
  const [info, amount, collector, signature] = call.args
  const { network } = state
  const symbol = requireAuthorizing(network, info.token)
  requireSender(caller, info.operator)
  if (amount === 0n || amount > info.maxAmount) throw new Error('InvalidAmount')
  if (info.preApprovalExpiry > info.authorizationExpiry || info.authorizationExpiry > info.refundExpiry)
    throw new Error('InvalidExpiries')
  if (info.minFeeBps > info.maxFeeBps || info.maxFeeBps > 10_000) throw new Error('InvalidFee')
  if (!isSame(collector, escrowCollectorAddress)) throw new Error('InvalidCollector')
  const hash = hashEscrowPayment(info, network.chainId)
  const nonce = deriveEscrowNonce(info, network.chainId)
  const from = getAddress(info.payer)
  const mark = authorizationMark({ token: info.token, authorizer: from, nonce })
  const validBefore = BigInt(info.preApprovalExpiry)
  const signed = hashTypedData({
    domain: tokenDomain(network, symbol),
    types: signedPaymentTypes,
    primaryType: 'ReceiveWithAuthorization',
    message: { from, to: escrowCollectorAddress, value: info.maxAmount, validAfter: 0n, validBefore, nonce },
  })
  await requireSigned(from, signed, [signature], 'ERC3009InvalidSignature')
  const fee = call.functionName === 'charge' ? findFee(info, amount, call.args[4], call.args[5]) : undefined
  const check = () => {
    if (readSecond(clock) >= info.preApprovalExpiry) throw new Error('AfterPreApprovalExpiry')
    if (state.escrow(hash).isCollected) throw new Error('PaymentAlreadyCollected')
    if (state.isUsed(mark)) throw new Error('ERC3009UsedAuthorization')
    const refusal = state.findRefusal(symbol, from, info.maxAmount)
    if (refusal !== undefined) throw new Error(refusal)
  }
  const authorization = { authorizer: lowerCaseAddress(from), nonce }
  return prepareWrite(check, () => {
    const to = escrowCollectorAddress
    state.move(symbol, { from, to, units: info.maxAmount, mark, authorization })
    if (info.maxAmount > amount) state.move(symbol, { from: to, to: from, units: info.maxAmount - amount })
    state.move(symbol, { from: to, to: findStore(info.operator), units: amount })
    const payment = state.escrow(hash)
    payment.isCollected = true
    if (fee === undefined) payment.capturable = amount
    else {
      payment.refundable = amount
      distribute(context, info, amount, fee)
    }
  })
}

function judgeCapture(
  context: CallContext,
  [info, amount, feeBps, feeReceiver]: Extract<Call, { functionName: 'capture' }>['args'],
): SimulatedCall {
  const { state, clock, caller } = context
  requireSender(caller, info.operator)
  const fee = findFee(info, amount, feeBps, feeReceiver)
  const payment = state.escrow(hashEscrowPayment(info, state.network.chainId))
  const check = () => {
    if (readSecond(clock) >= info.authorizationExpiry) throw new Error('AfterAuthorizationExpiry')
    if (amount === 0n) throw new Error('InvalidAmount')
    if (payment.capturable < amount) throw new Error('InsufficientAuthorization')
  }
  return prepareWrite(check, () => {
    payment.capturable -= amount
    payment.refundable += amount
    distribute(context, info, amount, fee)
  })
}

function judgeReturn(
  { state, clock, caller }: CallContext,
  { functionName, args: [info] }: Extract<Call, { functionName: 'void' | 'reclaim' }>,
): SimulatedCall {
  const isReclaim = functionName === 'reclaim'
  requireSender(caller, isReclaim ? info.payer : info.operator)
  const symbol = requireAuthorizing(state.network, info.token)
  const payment = state.escrow(hashEscrowPayment(info, state.network.chainId))
  const check = () => {
    if (isReclaim && readSecond(clock) < info.authorizationExpiry)
      throw new Error('BeforeAuthorizationExpiry')
    if (payment.capturable === 0n) throw new Error('ZeroAuthorization')
  }
  return prepareWrite(check, () => {
    const units = payment.capturable
    payment.capturable = 0n
    state.move(symbol, { from: findStore(info.operator), to: info.payer, units })
  })
}

function judgeRefund(
  { state, clock, caller }: CallContext,
  [info, amount]: Extract<Call, { functionName: 'refund' }>['args'],
): SimulatedCall {
  requireSender(caller, info.operator)
  const symbol = requireAuthorizing(state.network, info.token)
  const payment = state.escrow(hashEscrowPayment(info, state.network.chainId))
  const check = () => {
    if (readSecond(clock) >= info.refundExpiry) throw new Error('AfterRefundExpiry')
    if (amount === 0n) throw new Error('InvalidAmount')
    if (payment.refundable < amount) throw new Error('RefundExceedsCapture')
    if (state.readAllowance(symbol, info.operator, escrowAddress) < amount)
      throw new Error('ERC20: transfer amount exceeds allowance')
    const refusal = state.findRefusal(symbol, info.operator, amount)
    if (refusal !== undefined) throw new Error(refusal)
  }
  return prepareWrite(check, () => {
    payment.refundable -= amount
    const left = state.readAllowance(symbol, info.operator, escrowAddress) - amount
    state.allow(symbol, info.operator, escrowAddress, left)
    const store = findStore(info.operator)
    state.move(symbol, { from: info.operator, to: store, units: amount })
    state.move(symbol, { from: store, to: info.payer, units: amount })
  })
}

interface Fee {
  readonly units: bigint
  readonly receiver: Address
}

function findFee(info: EscrowPayment, amount: bigint, feeBps: number, receiver: Address): Fee {
  const units = (amount * BigInt(feeBps)) / 10_000n
  const isOtherReceiver = info.feeReceiver !== zeroAddress && !isSame(info.feeReceiver, receiver)
  if (feeBps < info.minFeeBps || feeBps > info.maxFeeBps || isOtherReceiver) throw new Error('InvalidFee')
  if (units > 0n && receiver === zeroAddress) throw new Error('InvalidFee')
  return { units, receiver }
}

function distribute({ state }: CallContext, info: EscrowPayment, amount: bigint, fee: Fee): void {
  const symbol = requireAuthorizing(state.network, info.token)
  const from = findStore(info.operator)
  if (fee.units > 0n) state.move(symbol, { from, to: fee.receiver, units: fee.units })
  if (amount > fee.units) state.move(symbol, { from, to: info.receiver, units: amount - fee.units })
}

/** Where the escrow keeps the tokens of an operator. */
function findStore(operator: Address): Address {
  return getAddress(fakeAddress(`token store ${lowerCaseAddress(operator)}`))
}

function requireSender(caller: Address, expected: Address): void {
  if (!isSame(caller, expected)) throw new Error('InvalidSender')
}

function readSecond(clock: CallContext['clock']): number {
  return Math.floor(clock().getTime() / 1000)
}

function isSame(one: Address, other: Address): boolean {
  return lowerCaseAddress(one) === lowerCaseAddress(other)
}

function returns(functionName: Call['functionName'], result: unknown): SimulatedCall {
  // The result's shape is the function's own, written above.
  const encoded = encodeFunctionResult({ abi, functionName, result: result as never })
  return { result, encoded, commit: () => undefined }
}

function decode(data: Hex): Call | undefined {
  try {
    return decodeFunctionData({ abi, data })
  } catch {
    return undefined
  }
}
