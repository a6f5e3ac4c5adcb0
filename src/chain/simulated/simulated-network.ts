/** Which chain is simulated, with the tokens that it has. */
import { type ChainName, chains } from '../../core/money/chains.ts'
import { type Stablecoin, stablecoins } from '../../core/money/money.ts'
import type { Address } from '../../providers/chain/port.ts'
import { lowerCaseAddress, type SandboxToken, sandboxTokensOn } from '../rpc/networks.ts'

export interface SimulatedNetwork {
  readonly name: ChainName
  readonly chainId: number
  readonly tokens: Readonly<Record<Stablecoin, SandboxToken>>
}

export function simulatedNetwork(name: ChainName): SimulatedNetwork {
  return { name, chainId: chains[name].id, tokens: sandboxTokensOn(name) }
}

export function tokenAt({ tokens }: SimulatedNetwork, address: Address): Stablecoin | undefined {
  const plain = lowerCaseAddress(address)
  return stablecoins.find((symbol) => lowerCaseAddress(tokens[symbol].address) === plain)
}

/** Finds the token with EIP-2612 and EIP-3009 at an address. @throws Error where there is none. */
export function requireAuthorizing(network: SimulatedNetwork, address: Address): Stablecoin {
  const symbol = tokenAt(network, address)
  if (symbol === undefined || !network.tokens[symbol].authorizations) throw new Error('execution reverted')
  return symbol
}

/** EIP-712 domain of a token. */
export function tokenDomain({ tokens, chainId }: SimulatedNetwork, symbol: Stablecoin) {
  const { name, version, address } = tokens[symbol]
  return { name, version, chainId, verifyingContract: address }
}
