import { privateKeyToAddress } from 'viem/accounts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Config } from '../../config/read-config.ts'
import type { Chain } from '../chain.ts'

/** Starts or connects to the chain of a configuration. Each kind is loaded only when it is used. */
export async function startConfiguredChain(
  { chain }: Pick<Config, 'chain'>,
  parts: { readonly clock: Clock; readonly log: Log },
): Promise<Chain> {
  switch (chain.kind) {
    case 'anvil':
      return (await import('./node/anvil.ts')).startAnvilChain({
        ...parts,
        name: chain.name,
        binary: chain.anvilBinary,
      })
    case 'rpc':
      return (await import('./rpc.ts')).connectRpcChain({
        ...parts,
        name: chain.name,
        variable: chain.rpcVariable,
        url: chain.rpcUrl ?? '',
        sponsorKey: chain.sponsorKey,
        ownerKey: chain.ownerKey,
      })
    case 'simulated':
      return (await import('./simulated/simulated.ts')).createSimulatedChain(parts)
  }
}

/** Address of the key that owns the wallets of a public chain; null: the sandbox's own key owns them. */
export function chainOwnerOf({ chain: { ownerKey, sponsorKey } }: Pick<Config, 'chain'>): string | null {
  const key = ownerKey ?? sponsorKey
  return key === null ? null : privateKeyToAddress(`0x${key.slice(2)}`)
}
