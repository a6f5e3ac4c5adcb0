/**
 * What only a development node (anvil) does: place code, hand out native coin, and send from an address without its key.
 * The node numbers such transactions itself, so that several gateways can share one.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { BaseError, keccak256, slice, type TransactionReceipt, toHex } from 'viem'
import type { Address, Hex } from '../chain.ts'
import type { NodeClient } from './client.ts'
import { awaitReceipt } from './receipts.ts'

/** The address that deploys and mints: nobody has its key, and only a development node lets it send. */
export const sandboxMinter: Address = slice(keccak256(toHex('bursar sandbox minter')), 12)

/** 10^12 ETH in wei: gas that never runs out. */
export const plenty = 10n ** 30n

/** Fees far above what a development node ever asks; what is not needed is not taken. Wei a unit of gas. */
export const developmentFees = { maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 0n } as const

/** One transaction from {@link sandboxMinter}. @property gas the most it may use. */
export interface MinterTransaction {
  readonly to: Address
  readonly data?: Hex
  readonly value?: bigint
  readonly gas: bigint
}

type Rpc = (request: { method: string; params: readonly unknown[] }) => Promise<unknown>

/** The node's own method by name; viem types only the ones it knows for public nodes. */
function rpcOf(client: NodeClient): Rpc {
  return (request) => client.transport.request(request)
}

/** Whether the node is anvil. @throws where it does not answer at all. */
export async function isDevelopmentNode(client: NodeClient): Promise<boolean> {
  try {
    await rpcOf(client)({ method: 'anvil_nodeInfo', params: [] })
    return true
  } catch (error) {
    await client.getChainId()
    if (error instanceof BaseError) return false
    throw error
  }
}

/** Stops the node's line for each request, which would only cost time. */
export async function silenceNode(client: NodeClient): Promise<void> {
  await rpcOf(client)({ method: 'anvil_setLoggingEnabled', params: [false] })
}

/** Sets the native balance. @param wei 1 ETH = 10^18. */
export async function setNativeBalance(client: NodeClient, address: Address, wei: bigint): Promise<void> {
  await rpcOf(client)({ method: 'anvil_setBalance', params: [address, toHex(wei)] })
}

/** Places runtime code at an address. */
export async function placeCode(client: NodeClient, address: Address, code: Hex): Promise<void> {
  await rpcOf(client)({ method: 'anvil_setCode', params: [address, code] })
}

/** Lets {@link sandboxMinter} send, with gas for all it will ever do. */
export async function enableMinter(client: NodeClient): Promise<void> {
  await rpcOf(client)({ method: 'anvil_impersonateAccount', params: [sandboxMinter] })
  await setNativeBalance(client, sandboxMinter, plenty)
}

/** Sends from {@link sandboxMinter} and waits for the receipt, whether it succeeded or not. */
export async function sendAsMinter(
  client: NodeClient,
  transaction: MinterTransaction,
): Promise<TransactionReceipt> {
  const { to, data = '0x', value = 0n, gas } = transaction
  const request = {
    from: sandboxMinter,
    to,
    data,
    value: toHex(value),
    gas: toHex(gas),
    maxFeePerGas: toHex(developmentFees.maxFeePerGas),
    maxPriorityFeePerGas: toHex(developmentFees.maxPriorityFeePerGas),
  }
  for (let attempt = 1; ; attempt += 1) {
    try {
      const hash = await rpcOf(client)({ method: 'eth_sendTransaction', params: [request] })
      return await awaitReceipt(client, hexOf(hash), 10_000)
    } catch (error) {
      // Two at the same moment can be given one number; the node then refuses the later one.
      if (attempt === 20 || !(error instanceof BaseError) || !isNumberTaken(error)) throw error
      await sleep(attempt)
    }
  }
}

function isNumberTaken(error: BaseError): boolean {
  return /already imported|nonce too low|underpriced|already known/i.test(error.details)
}

function hexOf(value: unknown): Hex {
  if (typeof value !== 'string' || !value.startsWith('0x'))
    throw new Error('The node answered no transaction hash.')
  return `0x${value.slice(2)}`
}
