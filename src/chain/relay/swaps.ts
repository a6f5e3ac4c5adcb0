/** Simulation of swaps right before they are signed: their only effects may be the two that were agreed. */
import {
  decodeErrorResult,
  decodeEventLog,
  decodeFunctionResult,
  encodeFunctionData,
  MethodNotFoundRpcError,
  MethodNotSupportedRpcError,
  parseAbi,
} from 'viem'
import { z } from 'zod'
import { toDecimal } from '../../core/money/money.ts'
import type { Address, Hex, TokenAddresses, WalletCall } from '../../providers/chain/port.ts'
import type { OperationPlan } from '../accounts/user-operation.ts'
import { bridgeDeskAbi, swapDeskAbi } from '../contracts/abi.ts'
import type { NodeClient } from '../rpc/client.ts'
import { type AccountContracts, addressIn, lowerCaseAddress } from '../rpc/networks.ts'
import { allowanceRefusal, tokenRefusals } from './refusal.ts'

type SwapCall = Extract<WalletCall, { kind: 'swap' }>

const execution = parseAbi([
  'function execTransactionFromModuleReturnData(address to, uint256 value, bytes data, uint8 operation) returns (bool success, bytes returnData)',
])

const effects = parseAbi([
  'event Transfer(address indexed from, address indexed to, uint256 value)',
  'event Approval(address indexed owner, address indexed spender, uint256 value)',
  'event AddedOwner(address indexed owner)',
  'event RemovedOwner(address indexed owner)',
  'event EnabledModule(address indexed module)',
  'event DisabledModule(address indexed module)',
])

const hex = z.templateLiteral(['0x', z.string().regex(/^[0-9a-fA-F]*$/)])
const log = z.object({ address: hex, topics: z.array(hex), data: hex })
type Log = z.output<typeof log>
const simulatedBlocks = z
  .array(
    z.object({
      calls: z.array(z.object({ status: hex, returnData: hex, logs: z.array(log).default([]) })).length(1),
    }),
  )
  .length(1)

/**
 * Simulates a swap as the wallet's module would execute it.
 * @returns why it must not be signed; undefined if its only effects are that the amount leaves and the minimum arrives.
 * @throws when the node does not answer.
 */
export async function findSwapRefusal(
  { client, contracts, tokens }: { client: NodeClient; contracts: AccountContracts; tokens: TokenAddresses },
  { plan: { safe, call: desk }, call, wallet }: { plan: OperationPlan; call: SwapCall; wallet: Address },
): Promise<string | undefined> {
  const { returnData, logs } = await simulate(client, {
    from: contracts.module,
    to: safe,
    data: encodeFunctionData({
      abi: execution,
      functionName: 'execTransactionFromModuleReturnData',
      args: [desk.to, 0n, desk.data, 1],
    }),
  })
  const [succeeded, answer] = decodeFunctionResult({
    abi: execution,
    functionName: 'execTransactionFromModuleReturnData',
    data: returnData,
  })
  if (!succeeded) return describeSwapRevert(answer, call)
  return logs === null ? undefined : findOtherEffect(logs, { call, tokens, wallet, desk: desk.to })
}

/**
 * Executes a call without a transaction. @returns logs: null where the node cannot tell them, and the checks of the desk, which
 * are part of the operation, stand alone.
 */
async function simulate(
  client: NodeClient,
  call: { readonly from: Address; readonly to: Address; readonly data: Hex },
): Promise<{ readonly returnData: Hex; readonly logs: readonly Log[] | null }> {
  try {
    const answer: unknown = await client.request<{
      Method: 'eth_simulateV1'
      Parameters: readonly unknown[]
      ReturnType: unknown
    }>({
      method: 'eth_simulateV1',
      params: [{ blockStateCalls: [{ calls: [call] }], validation: false }, 'latest'],
    })
    const [block] = simulatedBlocks.parse(answer)
    const [made] = block?.calls ?? []
    if (made === undefined) throw new Error('the node simulated nothing')
    return made
  } catch (error) {
    if (!isUnsupported(error)) throw error
    const { data } = await client.call({ account: call.from, to: call.to, data: call.data })
    if (data === undefined) throw new Error('the simulation of a swap returned nothing', { cause: error })
    return { returnData: data, logs: null }
  }
}

function isUnsupported(error: unknown): boolean {
  if (error instanceof MethodNotFoundRpcError || error instanceof MethodNotSupportedRpcError) return true
  return error instanceof Error && error.cause !== undefined && isUnsupported(error.cause)
}

/** Finds an effect on the wallet that was not agreed. Logs of other contracts about others are the route's own matter. */
function findOtherEffect(
  logs: readonly Log[],
  {
    call: { token, units, route },
    tokens,
    wallet,
    desk,
  }: { call: SwapCall; tokens: TokenAddresses; wallet: Address; desk: Address },
): string | undefined {
  const isWallet = (address: string) => isSame(address, wallet)
  let received = 0n
  let left = 0n
  for (const { address, topics, data } of logs) {
    const event = decode(topics, data)
    if (event === undefined) continue
    if (event.eventName === 'Transfer') {
      const { from, to, value } = event.args
      if (isWallet(to) && isSame(address, addressIn(tokens, route.buy))) received += value
      if (!isWallet(from) || value === 0n) continue
      const isAgreed = isSame(address, addressIn(tokens, token)) && isSame(to, desk) && value === units
      if (!isAgreed) return 'it would move other money of the wallet'
      left += value
    } else if (event.eventName === 'Approval') {
      const { owner, spender, value } = event.args
      // The desk lets the route take the amount, and takes that back.
      if (isWallet(owner) && value > 0n) return `it would let ${spender} spend money of the wallet`
    } else if (isWallet(address)) return 'it would change who may act for the wallet'
  }
  if (left > units) return 'it would move the amount more than once'
  // What is burned arrives on another chain.
  if (route.burn === undefined && received < route.minReceived)
    return `it would bring ${toDecimal({ asset: route.buy, units: received })} ${route.buy}`
  return undefined
}

function decode(topics: readonly Hex[], data: Hex) {
  const [first, ...rest] = topics
  if (first === undefined) return undefined
  try {
    return decodeEventLog({ abi: effects, topics: [first, ...rest], data })
  } catch {
    return undefined
  }
}

/** Describes why a swap reverted. */
function describeSwapRevert(data: Hex, { route }: Pick<SwapCall, 'route'>): string {
  const amount = (units: bigint) => `${toDecimal({ asset: route.buy, units })} ${route.buy}`
  if (route.burn !== undefined) return describeBurnRevert(data)
  try {
    const error = decodeErrorResult({ abi: swapDeskAbi, data })
    if (error.errorName === 'BelowMinimum')
      return `the route brings ${amount(error.args[0])}, less than ${amount(error.args[1])}`
    if (error.errorName === 'RouteFailed') return 'the route’s own call fails'
    if (error.errorName === 'AllowanceExceeded') return allowanceRefusal(error.args)
    if (error.errorName === 'ERC20InsufficientBalance') return tokenRefusals.ERC20InsufficientBalance
    if (error.errorName === 'CallForbidden') return 'the route’s call is not one that a swap may make'
    return error.errorName
  } catch {
    return 'execution reverted'
  }
}

function describeBurnRevert(data: Hex): string {
  try {
    const error = decodeErrorResult({ abi: bridgeDeskAbi, data })
    if (error.errorName === 'AllowanceExceeded') return allowanceRefusal(error.args)
    if (error.errorName === 'ERC20InsufficientBalance') return tokenRefusals.ERC20InsufficientBalance
    return error.errorName === 'Error' ? `the burn fails: ${error.args[0].slice(0, 100)}` : error.errorName
  } catch {
    return 'execution reverted'
  }
}

function isSame(one: string, other: string): boolean {
  return lowerCaseAddress(`0x${one.slice(2)}`) === lowerCaseAddress(`0x${other.slice(2)}`)
}
