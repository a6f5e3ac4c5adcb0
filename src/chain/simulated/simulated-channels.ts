/** The payment channels of the simulated chain: computes what `SandboxChannels.sol` and `SandboxDepositCollector.sol` would do. */
import {
  decodeAbiParameters,
  decodeFunctionData,
  encodeAbiParameters,
  encodeFunctionResult,
  getAddress,
  hashTypedData,
  keccak256,
  parseAbi,
  zeroAddress,
} from 'viem'
import { signedPaymentTypes } from '../../core/base/signed-payment-types.ts'
import type { Address, Hex } from '../../providers/chain/port.ts'
import {
  type ChannelConfig,
  channelDomain,
  channelStruct,
  channelsAddress,
  channelTypes,
  depositCollectorAddress,
  hashChannel,
} from '../../providers/payment-channels.ts'
import { lowerCaseAddress } from '../rpc/networks.ts'
import { requireAuthorizing, tokenDomain } from './simulated-network.ts'
import {
  authorizationMark,
  type CallContext,
  prepareWrite,
  requireSigned,
  type SimulatedCall,
} from './simulated-token.ts'

const abi = parseAbi([
  channelStruct,
  'struct Voucher { ChannelConfig channel; uint128 maxClaimableAmount; }',
  'struct VoucherClaim { Voucher voucher; bytes signature; uint128 totalClaimed; }',
  'function deposit(ChannelConfig config, uint128 amount, address collector, bytes collectorData)',
  'function claim(VoucherClaim[] claims)',
  'function claimWithSignature(VoucherClaim[] claims, bytes authorizerSignature)',
  'function settle(address receiver, address token)',
  'function initiateWithdraw(ChannelConfig config, uint128 amount)',
  'function finalizeWithdraw(ChannelConfig config)',
  'function refund(ChannelConfig config, uint128 amount)',
  'function refundWithSignature(ChannelConfig config, uint128 amount, uint256 nonce, bytes receiverAuthorizerSignature)',
  'function multicall(bytes[] data) returns (bytes[] results)',
  'function channels(bytes32 channelId) view returns (uint128 balance, uint128 totalClaimed)',
  'function pendingWithdrawals(bytes32 channelId) view returns (uint128 amount, uint40 initiatedAt)',
  'function refundNonce(bytes32 channelId) view returns (uint256)',
  'function receivers(address receiver, address token) view returns (uint128 totalClaimed, uint128 totalSettled)',
  'function getChannelId(ChannelConfig config) view returns (bytes32)',
])

type Call = ReturnType<typeof decodeFunctionData<typeof abi>>
type ArgsOf<Name extends Call['functionName']> = Extract<Call, { functionName: Name }>['args']
type Claims = ArgsOf<'claim'>[0]

const MIN_DELAY = 15 * 60
const MAX_DELAY = 30 * 24 * 3600

export function isChannelContract(address: Address): boolean {
  return [channelsAddress, depositCollectorAddress].some(
    (one) => lowerCaseAddress(one) === lowerCaseAddress(address),
  )
}

/** Checks an encoded call of the channels. @throws Error with the contract's reason when it would revert. */
export async function judgeChannelCall(context: CallContext, data: Hex): Promise<SimulatedCall> {
  const call = decode(data)
  if (call === undefined) throw new Error('execution reverted')
  const { state } = context
  switch (call.functionName) {
    case 'channels': {
      const { balance, claimed } = state.channel(call.args[0])
      return returns('channels', [balance, claimed])
    }
    case 'pendingWithdrawals': {
      const { withdrawal } = state.channel(call.args[0])
      return returns('pendingWithdrawals', [withdrawal?.amount ?? 0n, withdrawal?.initiatedAt ?? 0])
    }
    case 'refundNonce':
      return returns('refundNonce', state.channel(call.args[0]).refunds)
    case 'receivers': {
      const { claimed, settled } = state.receiver(...call.args)
      return returns('receivers', [claimed, settled])
    }
    case 'getChannelId':
      return returns('getChannelId', hashChannel(call.args[0], state.network.chainId))
    case 'multicall':
      return judgeMany(context, call.args[0])
    case 'deposit':
      return judgeDeposit(context, call.args)
    case 'claim':
      return judgeClaim(context, call.args[0], undefined)
    case 'claimWithSignature':
      return judgeClaim(context, ...call.args)
    case 'settle':
      return judgeSettlement(context, call.args)
    case 'initiateWithdraw':
    case 'finalizeWithdraw':
      return judgeWithdrawal(context, call)
    case 'refund':
    case 'refundWithSignature':
      return judgeRefund(context, call.args)
  }
}

async function judgeDeposit(
  { state, clock }: CallContext,
  [config, amount, collector, collectorData]: ArgsOf<'deposit'>,
): Promise<SimulatedCall> {
  const { network } = state
  const symbol = requireAuthorizing(network, config.token)
  if (lowerCaseAddress(collector) !== lowerCaseAddress(depositCollectorAddress))
    throw new Error('execution reverted')
  if ([config.receiver, config.receiverAuthorizer].includes(zeroAddress)) throw new Error('InvalidChannel')
  if (config.withdrawDelay < MIN_DELAY || config.withdrawDelay > MAX_DELAY) throw new Error('InvalidChannel')
  if (amount === 0n) throw new Error('InvalidAmount')
  const id = hashChannel(config, network.chainId)
  const [validAfter, validBefore, salt, signature] = decodeAbiParameters(
    [{ type: 'uint256' }, { type: 'uint256' }, { type: 'uint256' }, { type: 'bytes' }],
    collectorData,
  )
  const nonce = keccak256(encodeAbiParameters([{ type: 'bytes32' }, { type: 'uint256' }], [id, salt]))
  const from = getAddress(config.payer)
  const mark = authorizationMark({ token: config.token, authorizer: from, nonce })
  const hash = hashTypedData({
    domain: tokenDomain(network, symbol),
    types: signedPaymentTypes,
    primaryType: 'ReceiveWithAuthorization',
    message: { from, to: depositCollectorAddress, value: amount, validAfter, validBefore, nonce },
  })
  await requireSigned(from, hash, [signature], 'ERC3009InvalidSignature')
  const check = () => {
    const second = BigInt(Math.floor(clock().getTime() / 1000))
    if (second <= validAfter || second >= validBefore) throw new Error('ERC3009InvalidAuthorizationTime')
    if (state.isUsed(mark)) throw new Error('ERC3009UsedAuthorization')
    const refusal = state.findRefusal(symbol, from, amount)
    if (refusal !== undefined) throw new Error(refusal)
  }
  const authorization = { authorizer: lowerCaseAddress(from), nonce }
  return prepareWrite(check, () => {
    state.move(symbol, { from, to: depositCollectorAddress, units: amount, mark, authorization })
    state.move(symbol, { from: depositCollectorAddress, to: channelsAddress, units: amount })
    state.channel(id).balance += amount
  })
}

/** @param signature of the seller's authorizer; without one, the caller must be the seller. */
async function judgeClaim(
  { state, caller }: CallContext,
  claims: Claims,
  signature: Hex | undefined,
): Promise<SimulatedCall> {
  const { chainId } = state.network
  const entries = claims.map(({ voucher: { channel, maxClaimableAmount }, totalClaimed }) => ({
    channelId: hashChannel(channel, chainId),
    maxClaimableAmount,
    totalClaimed,
  }))
  const [first] = claims
  if (first === undefined) throw new Error('InvalidAmount')
  const { receiverAuthorizer } = first.voucher.channel
  for (const { voucher } of claims)
    if (
      signature === undefined
        ? !isOneOf(caller, [voucher.channel.receiver, voucher.channel.receiverAuthorizer])
        : !isOneOf(receiverAuthorizer, [voucher.channel.receiverAuthorizer])
    )
      throw new Error('Unauthorized')
  const domain = channelDomain(chainId)
  if (signature !== undefined) {
    const typed = { primaryType: 'ClaimBatch', message: { claims: entries } } as const
    await requireSigned(
      receiverAuthorizer,
      hashTypedData({ domain, types: channelTypes, ...typed }),
      [signature],
      'InvalidSignature',
    )
  }
  const isNewer = (at: number) =>
    (claims[at]?.totalClaimed ?? 0n) > state.channel(entries[at]?.channelId ?? '0x').claimed
  for (const [at, { voucher, signature: signed }] of claims.entries()) {
    if (!isNewer(at)) continue
    const { channel, maxClaimableAmount } = voucher
    const message = { channelId: entries[at]?.channelId ?? '0x', maxClaimableAmount }
    const hash = hashTypedData({ domain, types: channelTypes, primaryType: 'Voucher', message })
    const signer = channel.payerAuthorizer === zeroAddress ? channel.payer : channel.payerAuthorizer
    await requireSigned(signer, hash, [signed], 'InvalidSignature')
  }
  const check = () => {
    for (const [at, { totalClaimed, maxClaimableAmount, channelId }] of entries.entries()) {
      if (!isNewer(at)) continue
      if (totalClaimed > maxClaimableAmount) throw new Error('ClaimExceedsVoucher')
      if (totalClaimed > state.channel(channelId).balance) throw new Error('ClaimExceedsBalance')
    }
  }
  return prepareWrite(check, () => {
    for (const [at, { totalClaimed, channelId }] of entries.entries()) {
      const config = claims[at]?.voucher.channel
      if (config === undefined || !isNewer(at)) continue
      const channel = state.channel(channelId)
      state.receiver(config.receiver, config.token).claimed += totalClaimed - channel.claimed
      channel.claimed = totalClaimed
    }
  })
}

function judgeSettlement({ state }: CallContext, [receiver, token]: ArgsOf<'settle'>): SimulatedCall {
  const symbol = requireAuthorizing(state.network, token)
  return prepareWrite(
    () => undefined,
    () => {
      const account = state.receiver(receiver, token)
      const units = account.claimed - account.settled
      if (units === 0n) return
      account.settled = account.claimed
      state.move(symbol, { from: channelsAddress, to: receiver, units })
    },
  )
}

function judgeWithdrawal(
  context: CallContext,
  call: Extract<Call, { functionName: 'initiateWithdraw' | 'finalizeWithdraw' }>,
): SimulatedCall {
  const { state, clock, caller } = context
  const [config] = call.args
  if (!isOneOf(caller, [config.payer, config.payerAuthorizer])) throw new Error('Unauthorized')
  const id = hashChannel(config, state.network.chainId)
  const second = () => Math.floor(clock().getTime() / 1000)
  if (call.functionName === 'initiateWithdraw') {
    const [, amount] = call.args
    const check = () => {
      const { balance, claimed } = state.channel(id)
      if (amount === 0n || amount > balance - claimed) throw new Error('InvalidAmount')
    }
    return prepareWrite(check, () => {
      state.channel(id).withdrawal = { amount, initiatedAt: second() }
    })
  }
  const check = () => {
    const { withdrawal } = state.channel(id)
    if (withdrawal === undefined || second() < withdrawal.initiatedAt + config.withdrawDelay)
      throw new Error('WithdrawalNotReady')
  }
  return prepareWrite(check, () => {
    const channel = state.channel(id)
    const amount = channel.withdrawal?.amount ?? 0n
    channel.withdrawal = undefined
    giveBack(context, { config, id, amount })
  })
}

async function judgeRefund(
  context: CallContext,
  [config, amount, nonce, signature]: ArgsOf<'refund'> | ArgsOf<'refundWithSignature'>,
): Promise<SimulatedCall> {
  const { state, caller } = context
  const { chainId } = state.network
  const id = hashChannel(config, chainId)
  if (nonce === undefined || signature === undefined) {
    if (!isOneOf(caller, [config.receiver, config.receiverAuthorizer])) throw new Error('Unauthorized')
  } else {
    const typed = { primaryType: 'Refund', message: { channelId: id, nonce, amount } } as const
    const hash = hashTypedData({ domain: channelDomain(chainId), types: channelTypes, ...typed })
    await requireSigned(config.receiverAuthorizer, hash, [signature], 'InvalidSignature')
  }
  const check = () => {
    if (nonce !== undefined && nonce !== state.channel(id).refunds) throw new Error('InvalidNonce')
  }
  return prepareWrite(check, () => {
    state.channel(id).refunds += 1n
    giveBack(context, { config, id, amount })
  })
}

/** Returns at most what is not claimed. */
function giveBack(
  { state }: CallContext,
  { config, id, amount }: { config: ChannelConfig; id: Hex; amount: bigint },
): void {
  const channel = state.channel(id)
  const free = channel.balance - channel.claimed
  const units = amount < free ? amount : free
  if (units === 0n) return
  channel.balance -= units
  state.move(requireAuthorizing(state.network, config.token), {
    from: channelsAddress,
    to: config.payer,
    units,
  })
}

/** Each call is checked before any is executed; one that depends on an earlier one is checked again when it is. */
async function judgeMany(context: CallContext, calls: readonly Hex[]): Promise<SimulatedCall> {
  const judged = await Promise.all(calls.map((data) => judgeChannelCall(context, data)))
  return {
    ...returns(
      'multicall',
      judged.map(({ encoded }) => encoded),
    ),
    commit() {
      for (const one of judged) one.commit()
    },
  }
}

function isOneOf(address: Address, others: readonly Address[]): boolean {
  return others.some((other) => lowerCaseAddress(other) === lowerCaseAddress(address))
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
