/** Reasons of rejected calls. Those of tokens are Circle's messages, which x402 facilitators parse. */
import {
  BaseError,
  decodeErrorResult,
  ExecutionRevertedError,
  HttpRequestError,
  isHex,
  parseAbi,
  TimeoutError,
} from 'viem'
import { toDecimal } from '../../core/money/money.ts'
import type { Hex, RefusalCause } from '../../providers/chain/port.ts'
import { allowanceAbi, entryPointAbi, permit2Abi, tokenAbi, uptoProxyAbi } from '../contracts/abi.ts'

/** Messages of token errors. @see https://github.com/circlefin/stablecoin-evm */
export const tokenRefusals = {
  ERC20InsufficientBalance: 'ERC20: transfer amount exceeds balance',
  ERC20InvalidReceiver: 'ERC20: transfer to the zero address or to another caller',
  ERC2612ExpiredSignature: 'FiatTokenV2: permit is expired',
  ERC2612InvalidSigner: 'EIP2612: invalid signature',
  ERC3009InvalidSignature: 'FiatTokenV2: invalid signature',
  ERC3009InvalidAuthorizationTime: 'FiatTokenV2: authorization is not yet valid or is expired',
  ERC3009UsedAuthorization: 'FiatTokenV2: authorization is used or canceled',
} as const

const refusalAbi = [
  ...tokenAbi,
  ...entryPointAbi,
  ...allowanceAbi,
  ...permit2Abi,
  ...uptoProxyAbi,
  ...parseAbi(['error Error(string reason)', 'error Panic(uint256 code)']),
]

/** Reads the reason of a reverted call; undefined for any other error. */
export function findRefusal(error: unknown): string | undefined {
  if (!(error instanceof BaseError)) return undefined
  const data = findRevertData(error)
  if (data !== undefined) return describeRevert(data)
  return error.walk((cause) => cause instanceof ExecutionRevertedError) === null
    ? undefined
    : 'execution reverted'
}

/** Reads the operation of a bundle that the EntryPoint rejected, and why; undefined if it named none. */
export function findFailedOperation(error: unknown): { index: number; reason: string } | undefined {
  const data = error instanceof BaseError ? findRevertData(error) : undefined
  if (data === undefined || data === '0x') return undefined
  try {
    const { errorName, args } = decodeErrorResult({ abi: entryPointAbi, data })
    return errorName === 'FailedOp' || errorName === 'FailedOpWithRevert'
      ? { index: Number(args[0]), reason: args[1] }
      : undefined
  } catch {
    return undefined
  }
}

/** Prefix of the chain's message about an exceeded allowance. */
const ALLOWANCE = 'on-chain allowance'

/**
 * Classifies a rejection. AA22 and AA24 are the EntryPoint's codes for an expired operation and an invalid signature.
 */
export function findCause(reason: string): RefusalCause {
  return /^AA2[24]/.test(reason) || reason.startsWith(ALLOWANCE) ? 'authorization' : 'transfer'
}

/** Checks whether an operation was rejected because another key owns its Safe. */
export function isSignatureError(reason: string): boolean {
  return reason.startsWith('AA24')
}

/** Checks whether the node could not be reached or timed out, so that the result of the request is unknown. */
export function isConnectionError(error: unknown): boolean {
  if (error instanceof HttpRequestError || error instanceof TimeoutError) return true
  return error instanceof Error && error.cause !== undefined && isConnectionError(error.cause)
}

function findRevertData(error: BaseError): Hex | undefined {
  let data: Hex | undefined
  error.walk((cause) => {
    if (typeof cause === 'object' && cause !== null && 'data' in cause && isHex(cause.data)) data = cause.data
    return data !== undefined
  })
  return data
}

function describeRevert(data: Hex): string {
  if (data === '0x') return 'execution reverted'
  try {
    const { errorName, args } = decodeErrorResult({ abi: refusalAbi, data })
    if (errorName === 'FailedOp' || errorName === 'FailedOpWithRevert') return String(args[1])
    if (errorName === 'Error') return String(args[0])
    if (errorName === 'TransferFailed') return describeRevert(args[0])
    if (errorName === 'AllowanceExceeded') return allowanceRefusal(args)
    return isTokenRefusal(errorName) ? tokenRefusals[errorName] : errorName
  } catch {
    return `execution reverted with ${data.slice(0, 10)}`
  }
}

/** Message for an exceeded allowance; amounts in millionths of a US dollar. */
export function allowanceRefusal([daily, spent, value]: readonly [bigint, bigint, bigint]): string {
  const dollars = (micros: bigint) => toDecimal({ asset: 'USDC', units: micros })
  return `${ALLOWANCE} of ${dollars(daily)} USD a day: ${dollars(spent)} is spent, ${dollars(value)} more was requested`
}

function isTokenRefusal(name: string): name is keyof typeof tokenRefusals {
  return name in tokenRefusals
}
