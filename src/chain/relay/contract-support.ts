/** Whether the contracts of a scheme of x402 are on a chain, with code that is known here. */
import { keccak256 } from 'viem'
import type { ContractSupport, Hex } from '../../providers/chain/port.ts'
import type { NodeClient } from '../rpc/client.ts'
import { schemeContracts } from '../rpc/networks.ts'

export type Scheme = keyof typeof schemeContracts

/** @param hashes keccak256 of the code that the contracts may have. */
export async function readContractSupport(
  client: NodeClient,
  scheme: Scheme,
  hashes: ReadonlySet<Hex>,
): Promise<ContractSupport> {
  const codes = await Promise.all(schemeContracts[scheme].map((address) => client.getCode({ address })))
  return judgeContractSupport(codes, hashes)
}

export function judgeContractSupport(
  codes: readonly (Hex | undefined)[],
  hashes: ReadonlySet<Hex>,
): ContractSupport {
  if (codes.some((code) => !code)) return 'missing'
  return codes.every((code = '0x') => hashes.has(keccak256(code))) ? 'supported' : 'unknown_code'
}
