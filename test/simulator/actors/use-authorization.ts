/** An EIP-3009 authorization of USDC, and its use beside the gateway. @see https://eips.ethereum.org/EIPS/eip-3009 */
import { parseAbi } from 'viem'
import { sandboxTokens } from '../../../src/chain/rpc/networks.ts'
import type { Address, Hex } from '../../../src/providers/chain/port.ts'
import type { World } from '../world.ts'

export interface Authorization {
  readonly from: Address
  readonly to: Address
  readonly value: string
  readonly validAfter: string
  readonly validBefore: string
  readonly nonce: Hex
}

const abi = parseAbi([
  'function transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)',
])

/** @throws Error when the token refuses it. */
export async function useAuthorization(
  { scheduler, network }: World,
  { from, to, value, validAfter, validBefore, nonce }: Authorization,
  signature: Hex,
): Promise<void> {
  const args = [from, to, BigInt(value), BigInt(validAfter), BigInt(validBefore), nonce, signature]
  const { address } = sandboxTokens.USDC
  const input = { address, abi, functionName: 'transferWithAuthorization', args }
  await scheduler.track(network.mine({ kind: 'writeContract', input }))
}
