/** Tokens of the simulated chain: computes what their contracts would return. */
import {
  decodeFunctionData,
  encodeAbiParameters,
  getAddress,
  hashTypedData,
  parseAbi,
  recoverAddress,
  type Signature,
  slice,
} from 'viem'
import type { Clock } from '../../core/base/clock.ts'
import { signedPaymentTypes as types } from '../../core/base/signed-payment-types.ts'
import type { Stablecoin } from '../../core/money/money.ts'
import type { Address, Hex, TokenAuthorization } from '../../providers/chain/port.ts'
import { tokenRefusals } from '../relay/refusal.ts'
import { lowerCaseAddress } from '../rpc/networks.ts'
import { type SimulatedNetwork, tokenDomain } from './simulated-network.ts'
import type { SimulatedState } from './simulated-state.ts'

const abi = parseAbi([
  'function name() view returns (string)',
  'function symbol() view returns (string)',
  'function version() view returns (string)',
  'function decimals() view returns (uint8)',
  'function balanceOf(address account) view returns (uint256)',
  'function allowance(address owner, address spender) view returns (uint256)',
  'function nonces(address owner) view returns (uint256)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function transferFrom(address from, address to, uint256 value) returns (bool)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)',
  'function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)',
  'function permit(address owner, address spender, uint256 value, uint256 deadline, bytes signature)',
])

/** A checked call. @property commit executes it in one synchronous step; throws when it has become invalid. */
export interface SimulatedCall {
  readonly result: unknown
  /** Result, encoded as a contract would return it. */
  readonly encoded: Hex
  commit(): void
}

/** Context of a check. */
export interface CallContext {
  readonly state: SimulatedState
  readonly clock: Clock
  /** Caller, who pays and whose allowance counts. */
  readonly caller: Address
}

/** @see https://eips.ethereum.org/EIPS/eip-3009 */
const cancellationTypes = {
  CancelAuthorization: [
    { name: 'authorizer', type: 'address' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

type Decoded = ReturnType<typeof decodeFunctionData<typeof abi>>

/** Checks an encoded call of a token. @throws Error with the contract's reason when it would revert. */
export async function judgeTokenCall(
  context: CallContext,
  symbol: Stablecoin,
  data: Hex,
): Promise<SimulatedCall> {
  const call = decode(data)
  const { state } = context
  const token = state.network.tokens[symbol]
  if (call === undefined || !(token.authorizations || isPlain(call.functionName)))
    throw new Error('execution reverted')
  switch (call.functionName) {
    case 'name':
      return read(token.name)
    case 'symbol':
      return read(symbol)
    case 'version':
      return read(token.version)
    case 'decimals':
      return read(token.decimals)
    case 'balanceOf':
      return read(state.readBalance(symbol, ...call.args))
    case 'allowance':
      return read(state.readAllowance(symbol, ...call.args))
    case 'nonces':
      return read(state.countPermits(symbol, ...call.args))
    case 'authorizationState':
      return read(state.isUsed(markAuthorization(state.network, symbol, ...call.args)))
    case 'transferFrom':
      return judgeTransferFrom(context, symbol, call.args)
    case 'transferWithAuthorization':
      return judgeAuthorization(context, symbol, call.args)
    case 'cancelAuthorization':
      return judgeCancellation(context, symbol, call.args)
    case 'permit':
      return judgePermit(context, symbol, call.args)
  }
}

type ArgsOf<Name extends Decoded['functionName']> = Extract<Decoded, { functionName: Name }>['args']

function judgeTransferFrom(
  { state, caller }: CallContext,
  symbol: Stablecoin,
  args: ArgsOf<'transferFrom'>,
): SimulatedCall {
  const [from, to, units] = args
  const check = () => {
    const refusal = state.findRefusal(symbol, from, units)
    if (refusal !== undefined) throw new Error(refusal)
    if (state.readAllowance(symbol, from, caller) < units)
      throw new Error('ERC20: transfer amount exceeds allowance')
  }
  return prepareWrite(check, () => {
    state.allow(symbol, from, caller, state.readAllowance(symbol, from, caller) - units)
    state.move(symbol, { from, to, units })
  })
}

async function judgeAuthorization(
  { state, clock }: CallContext,
  symbol: Stablecoin,
  [from, to, value, validAfter, validBefore, nonce, ...signature]: ArgsOf<'transferWithAuthorization'>,
): Promise<SimulatedCall> {
  const message = { from, to, value, validAfter, validBefore, nonce }
  const primaryType = 'TransferWithAuthorization'
  const mark = markAuthorization(state.network, symbol, from, nonce)
  const check = () => {
    const second = BigInt(Math.floor(clock().getTime() / 1000))
    if (second <= validAfter) throw new Error('FiatTokenV2: authorization is not yet valid')
    if (second >= validBefore) throw new Error('FiatTokenV2: authorization is expired')
    if (state.isUsed(mark)) throw new Error(tokenRefusals.ERC3009UsedAuthorization)
    const refusal = state.findRefusal(symbol, from, value)
    if (refusal !== undefined) throw new Error(refusal)
  }
  const hash = hashTypedData({ domain: tokenDomain(state.network, symbol), types, primaryType, message })
  await requireSigned(from, hash, signature, tokenRefusals.ERC3009InvalidSignature)
  const authorization = { authorizer: lowerCaseAddress(from), nonce }
  return prepareWrite(check, () => state.move(symbol, { from, to, units: value, mark, authorization }))
}

async function judgeCancellation(
  { state }: CallContext,
  symbol: Stablecoin,
  [authorizer, nonce, ...signature]: ArgsOf<'cancelAuthorization'>,
): Promise<SimulatedCall> {
  const mark = markAuthorization(state.network, symbol, authorizer, nonce)
  const check = () => {
    if (state.isUsed(mark)) throw new Error(tokenRefusals.ERC3009UsedAuthorization)
  }
  const typed = { primaryType: 'CancelAuthorization', message: { authorizer, nonce } } as const
  const hash = hashTypedData({
    domain: tokenDomain(state.network, symbol),
    types: cancellationTypes,
    ...typed,
  })
  await requireSigned(authorizer, hash, signature, tokenRefusals.ERC3009InvalidSignature)
  return prepareWrite(check, () => state.use(mark))
}

async function judgePermit(
  { state, clock }: CallContext,
  symbol: Stablecoin,
  [owner, spender, value, deadline, ...signature]: ArgsOf<'permit'>,
): Promise<SimulatedCall> {
  const nonce = state.countPermits(symbol, owner)
  const message = { owner, spender, value, nonce, deadline }
  const check = () => {
    if (BigInt(Math.floor(clock().getTime() / 1000)) > deadline)
      throw new Error(tokenRefusals.ERC2612ExpiredSignature)
    if (state.countPermits(symbol, owner) !== nonce) throw new Error(tokenRefusals.ERC2612InvalidSigner)
  }
  const hash = hashTypedData({
    domain: tokenDomain(state.network, symbol),
    types,
    primaryType: 'Permit',
    message,
  })
  await requireSigned(owner, hash, signature, tokenRefusals.ERC2612InvalidSigner)
  return prepareWrite(check, () => {
    state.countPermit(symbol, owner)
    state.allow(symbol, owner, spender, value)
  })
}

/**
 * Checks a write now and again on commit: signatures are verified asynchronously, and the books may change meanwhile.
 */
export function prepareWrite(check: () => void, change: () => void): SimulatedCall {
  check()
  return {
    result: undefined,
    encoded: '0x',
    commit() {
      check()
      change()
    },
  }
}

export function read(result: string | number | bigint | boolean): SimulatedCall {
  return { result, encoded: encode(result), commit: () => undefined }
}

function encode(result: string | number | bigint | boolean): Hex {
  if (typeof result === 'string') return encodeAbiParameters([{ type: 'string' }], [result])
  if (typeof result === 'boolean') return encodeAbiParameters([{ type: 'bool' }], [result])
  return encodeAbiParameters([{ type: 'uint256' }], [BigInt(result)])
}

type SignatureArgs = readonly [Hex] | readonly [number, Hex, Hex]

export async function requireSigned(
  signer: Address,
  hash: Hex,
  args: SignatureArgs,
  refusal: string,
): Promise<void> {
  const signature = toSignature(args)
  const recovered = await recoverAddress({ hash, signature }).catch(() => undefined)
  if (recovered !== getAddress(signer) || isMirrored(signature)) throw new Error(refusal)
}

function toSignature(args: SignatureArgs): Hex | Signature {
  if (args.length === 1) return args[0]
  const [v, r, s] = args
  return { r, s, v: BigInt(v) }
}

/** Detects the mirrored form of a signature, which tokens reject. */
function isMirrored(signature: Hex | Signature): boolean {
  const s = typeof signature === 'string' ? slice(signature, 32, 64) : signature.s
  return BigInt(s) > 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n
}

function decode(data: Hex): Decoded | undefined {
  try {
    return decodeFunctionData({ abi, data })
  } catch {
    return undefined
  }
}

/** Lists functions that tokens without EIP-2612 and EIP-3009 also have. */
function isPlain(functionName: string): boolean {
  return ['name', 'symbol', 'decimals', 'balanceOf', 'allowance', 'transferFrom'].includes(functionName)
}

function markAuthorization(
  { tokens }: SimulatedNetwork,
  symbol: Stablecoin,
  authorizer: Address,
  nonce: Hex,
): string {
  return authorizationMark({ token: tokens[symbol].address, authorizer, nonce })
}

/** Builds the mark of an authorization in the simulated books. */
export function authorizationMark({ token, authorizer, nonce }: TokenAuthorization): string {
  return `${lowerCaseAddress(token)}|${lowerCaseAddress(authorizer)}|${nonce}`
}
