/** Methods of development nodes (anvil): place code, fund addresses with native coin, and grant minting rights. */
import { BaseError, encodeAbiParameters, keccak256, pad, stringToHex, toHex } from 'viem'
import { random } from '../../core/base/random.ts'
import type { Address, Hex } from '../../providers/chain/port.ts'
import { isTimeout, type NodeClient } from './client.ts'

/** 10^12 ETH in wei: inexhaustible gas. */
const plenty = 10n ** 30n

/** Fees far above those of a development node; the excess is not charged. Wei per unit of gas. */
export const developmentFees = { maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 0n } as const

/** Storage slot of the minters in `SandboxToken.sol`. @see https://eips.ethereum.org/EIPS/eip-7201 */
const mintersSlot = toHex(hashNamespace('bursar.sandbox.token'), { size: 32 })

type Rpc = (request: { method: string; params: readonly unknown[] }) => Promise<unknown>

/** The node's raw RPC; viem types only the methods of public nodes. */
function toRpc(client: NodeClient): Rpc {
  return (request) => client.transport.request(request)
}

/**
 * Checks whether the node is anvil, by a method that takes none of its state locks: `anvil_nodeInfo` takes one twice, and
 * stops anvil 1.7.1 for ever when a block is mined in between. @throws when the node does not answer.
 */
export async function isDevelopmentNode(client: NodeClient): Promise<boolean> {
  try {
    return typeof (await toRpc(client)({ method: 'anvil_getAutomine', params: [] })) === 'boolean'
  } catch (error) {
    if (isTimeout(error)) throw error
    await client.getChainId()
    if (error instanceof BaseError) return false
    throw error
  }
}

/** Disables the node's request log, which costs time. */
export async function silenceNode(client: NodeClient): Promise<void> {
  await toRpc(client)({ method: 'anvil_setLoggingEnabled', params: [false] })
}

/** Mines an empty block that no other run has: its coinbase is random. */
export async function mineUniqueBlock(client: NodeClient): Promise<void> {
  const rpc = toRpc(client)
  await rpc({ method: 'anvil_setCoinbase', params: [toHex(random.bytes(20))] })
  await rpc({ method: 'evm_mine', params: [] })
}

/** Reads the node's whole state, as anvil's compressed JSON. */
export async function dumpState(client: NodeClient): Promise<Uint8Array> {
  const state = await toRpc(client)({ method: 'anvil_dumpState', params: [] })
  return Buffer.from(String(state).slice(2), 'hex')
}

export async function placeCode(client: NodeClient, address: Address, code: Hex): Promise<void> {
  await toRpc(client)({ method: 'anvil_setCode', params: [address, code] })
}

/** Gives an address inexhaustible gas and lets it mint the tokens, which must be the sandbox's. */
export async function makeSponsor(
  client: NodeClient,
  tokens: readonly Address[],
  address: Address,
): Promise<void> {
  await Promise.all([
    toRpc(client)({ method: 'anvil_setBalance', params: [address, toHex(plenty)] }),
    grantMinting(client, tokens, address),
  ])
}

/** Lets an address mint the sandbox's tokens, and burn its own. */
export async function grantMinting(
  client: NodeClient,
  tokens: readonly Address[],
  address: Address,
): Promise<void> {
  const minter = keccak256(
    encodeAbiParameters([{ type: 'address' }, { type: 'bytes32' }], [address, mintersSlot]),
  )
  const yes = pad('0x01', { size: 32 })
  await Promise.all(
    tokens.map((token) => toRpc(client)({ method: 'anvil_setStorageAt', params: [token, minter, yes] })),
  )
}

function hashNamespace(name: string): bigint {
  const id = BigInt(keccak256(stringToHex(name))) - 1n
  return BigInt(keccak256(toHex(id, { size: 32 }))) & ~0xffn
}
