/** The chains of a deployment. Money on one is never spent on another; only budgets count all of them together. */
import { Failure } from '../failures/failure.ts'
import type { Chain } from './chain.ts'

export interface Chains {
  /** Every chain; the default, for calls without one, comes first. */
  readonly all: readonly [Chain, ...Chain[]]
  /** @throws Failure `chain_not_supported` for a chain that this deployment does not have. */
  of(name: string): Chain
}

/** @param all the default first. */
export function createChains(all: readonly [Chain, ...Chain[]]): Chains {
  const byName = new Map<string, Chain>(all.map((chain) => [chain.name, chain]))
  return {
    all,
    of(name) {
      const chain = byName.get(name)
      if (chain !== undefined) return chain
      throw new Failure('chain_not_supported', `This deployment is not on "${name.slice(0, 40)}".`, {
        hint: `Use ${[...byName.keys()].map((one) => `"${one}"`).join(' or ')}.`,
      })
    },
  }
}

/** Parts on a named chain; on the default without a name. @throws Failure `chain_not_supported`. */
export function onChain<Parts extends { readonly chain: Chain; readonly chains: Chains }>(
  parts: Parts,
  name: string | undefined,
): Parts {
  return name === undefined ? parts : { ...parts, chain: parts.chains.of(name) }
}
