import { getAddress } from 'viem'
import * as viemChains from 'viem/chains'
import { describe, expect, it } from 'vitest'
import { policyChains } from '../../../policies/policy.ts'
import { nameOfChain } from '../../../src/console/words/names.ts'
import { chainFacts, chainNames, nameRpcVariable, toCaip2 } from '../../../src/core/money/chains.ts'

/** The same chains in an independent list. */
const known = {
  'base-sepolia': viemChains.baseSepolia,
  'arbitrum-sepolia': viemChains.arbitrumSepolia,
  base: viemChains.base,
  arbitrum: viemChains.arbitrum,
  optimism: viemChains.optimism,
  polygon: viemChains.polygon,
  ethereum: viemChains.mainnet,
}

describe('the table of chains', () => {
  it.each(chainNames)('has the id, the explorer and the gas coin of %s', (name) => {
    const { id, explorer, gasSymbol, isTest } = chainFacts(name)
    const { id: theirs, blockExplorers, nativeCurrency, testnet } = known[name]
    expect([id, explorer, gasSymbol, isTest]).toEqual([
      theirs,
      blockExplorers.default.url,
      nativeCurrency.symbol,
      testnet === true,
    ])
  })

  it.each(chainNames)('writes the addresses of %s with their checksums, each once', (name) => {
    const addresses = chainNames.flatMap((one) =>
      Object.values(chainFacts(one).tokens).map(({ address }) => address),
    )
    expect(new Set(addresses).size).toBe(addresses.length)
    for (const { address } of Object.values(chainFacts(name).tokens))
      expect(getAddress(address)).toBe(address)
  })

  it('names the same chains as policies and the console', () => {
    expect(new Set(policyChains)).toEqual(new Set([...chainNames, 'solana']))
    for (const name of policyChains) expect(nameOfChain(name)).not.toBe(name)
  })

  it('names networks and variables', () => {
    expect(toCaip2(chainFacts('base'))).toBe('eip155:8453')
    expect(nameRpcVariable('arbitrum-sepolia')).toBe('CHAIN_RPC_URL_ARBITRUM_SEPOLIA')
  })
})
