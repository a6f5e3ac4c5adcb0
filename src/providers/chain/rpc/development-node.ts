/** What only a development node (anvil) does: place code, hand out native coin, and make a minter of an address. */
import { BaseError, encodeAbiParameters, keccak256, pad, stringToHex, toHex } from 'viem'
import { stablecoins } from '../../../money/money.ts'
import type { Address, Hex } from '../../chain.ts'
import type { NodeClient } from './client.ts'
import { sandboxTokenAddresses } from './networks.ts'

/** 10^12 ETH in wei: gas that never runs out. */
const plenty = 10n ** 30n

/** Fees far above what a development node ever asks; what is not needed is not taken. Wei a unit of gas. */
export const developmentFees = { maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 0n } as const

/** Where `SandboxToken.sol` keeps its minters. @see https://eips.ethereum.org/EIPS/eip-7201 */
const mintersSlot = toHex(namespaceOf('bursar.sandbox.token'), { size: 32 })

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

/** Places runtime code at an address. */
export async function placeCode(client: NodeClient, address: Address, code: Hex): Promise<void> {
  await rpcOf(client)({ method: 'anvil_setCode', params: [address, code] })
}

/** Gives an address gas for ever and lets it mint every sandbox token. */
export async function makeSponsor(client: NodeClient, address: Address): Promise<void> {
  const minter = keccak256(
    encodeAbiParameters([{ type: 'address' }, { type: 'bytes32' }], [address, mintersSlot]),
  )
  const yes = pad('0x01', { size: 32 })
  const rpc = rpcOf(client)
  await Promise.all([
    rpc({ method: 'anvil_setBalance', params: [address, toHex(plenty)] }),
    ...stablecoins.map((token) =>
      rpc({ method: 'anvil_setStorageAt', params: [sandboxTokenAddresses[token], minter, yes] }),
    ),
  ])
}

function namespaceOf(name: string): bigint {
  const id = BigInt(keccak256(stringToHex(name))) - 1n
  return BigInt(keccak256(toHex(id, { size: 32 }))) & ~0xffn
}
