import { privateKeyToAddress } from 'viem/accounts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { describeVariable, withVariableName } from '../../base/start-together.ts'
import type { ConfiguredChain } from '../../config/chains.ts'
import type { Config } from '../../config/read-config.ts'
import type { Chain } from '../chain.ts'

interface Parts {
  readonly clock: Clock
  readonly log: Log
}

/**
 * Starts or connects to the chains of a configuration, all at once. Each kind is loaded only when it is used.
 * @throws Error that names the chain which failed; the others are closed.
 */
export async function startConfiguredChains(
  { chains }: Pick<Config, 'chains'>,
  parts: Parts,
): Promise<readonly [Chain, ...Chain[]]> {
  const [first, ...others] = chains
  const starting = [
    startOne(first, { ...parts, hasCards: true }),
    ...others.map((chain) => startOne(chain, { ...parts, hasCards: false })),
  ] as const
  const settled = await Promise.allSettled(starting)
  try {
    const [started, ...rest] = await Promise.all(starting)
    await requireSameWallets(started, rest)
    return [started, ...rest]
  } catch (error) {
    await Promise.all(settled.map((one) => (one.status === 'fulfilled' ? one.value.close() : undefined)))
    throw error
  }
}

/** Wallets have one address on every chain, or money sent to it elsewhere would be lost. */
async function requireSameWallets(first: Chain, others: readonly Chain[]): Promise<void> {
  const owners = [{ kind: 'gateway' }, { kind: 'eoa', address: first.entryPoint }] as const
  for (const origin of owners) {
    const wallet = { accountId: 'acct_probe', origin }
    const address = await first.walletAddress(wallet)
    for (const other of others)
      if ((await other.walletAddress(wallet)) !== address)
        throw new Error(
          `CHAINS: the wallets of ${first.name} and ${other.name} would have different addresses. Use local nodes for all chains, or public nodes for all.`,
        )
  }
}

function startOne(chain: ConfiguredChain, parts: Parts & { readonly hasCards: boolean }): Promise<Chain> {
  const { name, rpcUrl, rpcVariable } = chain
  const variable = describeVariable(rpcVariable, rpcUrl) ?? (parts.hasCards ? 'CHAIN' : `CHAINS (${name})`)
  return withVariableName(variable, startByKind(chain, parts))
}

async function startByKind(
  { kind, name, rpcVariable, rpcUrl, sponsorKey, ownerKey, anvilBinary }: ConfiguredChain,
  parts: Parts & { readonly hasCards: boolean },
): Promise<Chain> {
  switch (kind) {
    case 'anvil':
      return (await import('./node/anvil.ts')).startAnvilChain({ ...parts, name, binary: anvilBinary })
    case 'rpc':
      return (await import('./rpc.ts')).connectRpcChain({
        ...parts,
        name,
        variable: rpcVariable,
        url: rpcUrl ?? '',
        sponsorKey,
        ownerKey,
      })
    case 'simulated':
      return (await import('./simulated/simulated.ts')).createSimulatedChain(parts)
  }
}

/** Address of the key that owns the wallets of public chains; null: the sandbox's own key owns them. */
export function chainOwnerOf({ chains: [{ ownerKey, sponsorKey }] }: Pick<Config, 'chains'>): string | null {
  const key = ownerKey ?? sponsorKey
  return key === null ? null : privateKeyToAddress(`0x${key.slice(2)}`)
}
