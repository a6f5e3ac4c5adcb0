/** The chains of a deployment. Money on one is never spent on another; only budgets count all of them together. */
import { Failure } from '../../core/failures/failure.ts'
import type { ChainName } from '../../core/money/chains.ts'
import type { Chain } from './port.ts'

export interface Chains {
  /** Every chain that has answered since the start; the default, for calls without one, comes first. */
  readonly all: readonly [Chain, ...Chain[]]
  /** Configured chains that have not answered since the start. */
  readonly absent: readonly ChainName[]
  /**
   * @throws Failure `chain_not_supported` for a chain that this deployment does not have; `provider_unavailable` for an
   * absent one.
   */
  of(name: string): Chain
  /** The chain that a name means here; the name itself where it means none. */
  resolveName(name: string): string
  /** Registers a callback for each chain that answers after the start. */
  onJoin(welcome: (chain: Chain) => void): void
}

/**
 * @param started the default first. @param absent configured chains that did not answer. @param isSandbox a chain's test network
 * also answers to the chain's own name: `base` is `base-sepolia`.
 * @returns the chains, and a function with which an absent one joins them.
 */
export function createChains(
  started: readonly [Chain, ...Chain[]],
  absent: readonly ChainName[] = [],
  isSandbox = false,
): { chains: Chains; join: (chain: Chain) => void } {
  let all = started
  let missing = absent
  const welcomes: ((chain: Chain) => void)[] = []
  const chains: Chains = {
    get all() {
      return all
    },
    get absent() {
      return missing
    },
    resolveName(given) {
      const isHere = (name: string) => [...all.map((one) => one.name), ...missing].some((one) => one === name)
      const test = `${given}-sepolia`
      return isSandbox && !isHere(given) && isHere(test) ? test : given
    },
    of(given) {
      const name = chains.resolveName(given)
      const chain = all.find((one) => one.name === name)
      if (chain !== undefined) return chain
      if (missing.some((one) => one === name))
        throw new Failure('provider_unavailable', `The chain ${name} does not answer.`, { retryAfter: 5 })
      const names = [...all.map((one) => one.name), ...missing].map((one) => `"${one}"`)
      throw new Failure('chain_not_supported', `This deployment is not on "${name.slice(0, 40)}".`, {
        hint: `Use ${names.join(' or ')}.`,
      })
    },
    onJoin: (welcome) => void welcomes.push(welcome),
  }
  const join = (chain: Chain) => {
    all = [...all, chain]
    missing = missing.filter((name) => name !== chain.name)
    for (const welcome of welcomes) welcome(chain)
  }
  return { chains, join }
}

/**
 * Parts on a named chain; on the default without a name.
 * @throws Failure `chain_not_supported`, `provider_unavailable`.
 */
export function onChain<Parts extends { readonly chain: Chain; readonly chains: Chains }>(
  parts: Parts,
  name: string | undefined,
): Parts {
  return name === undefined ? parts : { ...parts, chain: parts.chains.of(name) }
}
