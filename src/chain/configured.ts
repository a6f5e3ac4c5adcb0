import type { Clock } from '../core/base/clock.ts'
import type { Log } from '../core/base/log.ts'
import { describeVariable, withVariableName } from '../core/base/start-together.ts'
import type { ConfiguredChain } from '../core/config/chains.ts'
import type { Config } from '../core/config/read-config.ts'
import type { ChainName } from '../core/money/chains.ts'
import type { Chain, GatewayKeys } from '../providers/chain/port.ts'
import type { ChainKey, Keys } from '../providers/keys/port.ts'
import { toKeyAccount } from './accounts/key-account.ts'
import { createKeyRing, type KeyRing } from './accounts/key-ring.ts'
import { isConnectionError } from './relay/refusal.ts'
import { lowerCaseAddress } from './rpc/networks.ts'

interface Parts {
  readonly clock: Clock
  readonly log: Log
  readonly keys: Pick<Keys, 'openChainKey'>
}

/** The gateway's keys, which are the same on every chain. */
interface Signers {
  readonly sponsor: ChainKey | null
  /** Own the smart accounts of public chains; null: none is configured. */
  readonly owners: KeyRing | null
}

/** A part of a chain's start. */
type Starting = Parts & Signers & { readonly hasCards: boolean }

/** @property started the default first. @property late chains whose node did not answer, to be tried again. */
export interface StartedChains {
  readonly started: readonly [Chain, ...Chain[]]
  readonly late: readonly { readonly name: ChainName; readonly connect: () => Promise<Chain> }[]
}

/**
 * Starts or connects to the chains of a configuration, all at once. Each kind is loaded only when it is used. In
 * production a node that does not answer holds up only its own chain, unless it is the default.
 * @throws Error that names the chain which failed; the others are closed.
 */
export async function startConfiguredChains(
  { chains, mode }: Pick<Config, 'chains' | 'mode'>,
  parts: Parts,
): Promise<StartedChains> {
  const [first, ...others] = chains
  const signers = await openSigners(first, parts.keys)
  const starting = startOne(first, { ...parts, ...signers, hasCards: true })
  const connect = async (chain: ConfiguredChain) => {
    const connected = await startOne(chain, { ...parts, ...signers, hasCards: false })
    try {
      await requireSameWallets(await starting, connected)
      return connected
    } catch (error) {
      await connected.close()
      throw error
    }
  }
  const [one, ...rest] = await Promise.allSettled([starting, ...others.map(connect)])
  const failed = rest.flatMap((result, at) =>
    result.status === 'rejected' ? [{ chain: others[at], reason: result.reason }] : [],
  )
  const fatal = failed.find(({ reason }) => mode === 'sandbox' || !isConnectionError(reason))
  const started = rest.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  if (one.status === 'rejected' || fatal !== undefined) {
    await Promise.all(started.map((chain) => chain.close()))
    if (one.status === 'rejected') throw one.reason
    await one.value.close()
    throw fatal?.reason
  }
  return {
    started: [one.value, ...started],
    late: failed.flatMap(({ chain }) =>
      chain === undefined ? [] : [{ name: chain.name, connect: () => connect(chain) }],
    ),
  }
}

/** Wallets have one address on every chain, or money sent to it elsewhere would be lost. */
async function requireSameWallets(first: Chain, other: Chain): Promise<void> {
  const owners = [{ kind: 'gateway' }, { kind: 'eoa', address: first.entryPoint }] as const
  for (const origin of owners) {
    const wallet = { accountId: 'acct_probe', origin }
    if ((await first.walletAddress(wallet)) !== (await other.walletAddress(wallet)))
      throw new Error(
        `CHAINS: the wallets of ${first.name} and ${other.name} would have different addresses. Use local nodes for all chains, or public nodes for all.`,
      )
  }
}

function startOne(chain: ConfiguredChain, parts: Starting): Promise<Chain> {
  const { name, rpcUrl, rpcVariable } = chain
  const variable = describeVariable(rpcVariable, rpcUrl) ?? (parts.hasCards ? 'CHAIN' : `CHAINS (${name})`)
  return withVariableName(variable, startByKind(chain, parts))
}

async function startByKind(
  { kind, name, rpcVariable, rpcUrl, anvilBinary, x402Hashes }: ConfiguredChain,
  parts: Starting,
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
        x402Hashes,
      })
    case 'simulated':
      return (await import('./simulated/simulated.ts')).createSimulatedChain({ ...parts, name })
  }
}

async function openSigners(
  { sponsorKey, ownerKey, ownerKeyPrevious }: OwningKeys,
  keys: Parts['keys'],
): Promise<Signers> {
  const open = (name: string, text: string | null) => (text === null ? null : keys.openChainKey(name, text))
  const [sponsor, owner, previous] = await Promise.all([
    open('CHAIN_SPONSOR_KEY', sponsorKey),
    open('CHAIN_OWNER_KEY', ownerKey),
    open('CHAIN_OWNER_KEY_PREVIOUS', ownerKeyPrevious),
  ])
  const current = owner ?? sponsor
  if (current === null) return { sponsor, owners: null }
  if (previous?.address === current.address)
    throw new Error('CHAIN_OWNER_KEY_PREVIOUS is the same key as CHAIN_OWNER_KEY.')
  return {
    sponsor,
    owners: createKeyRing(toKeyAccount(current), previous === null ? undefined : toKeyAccount(previous)),
  }
}

type OwningKeys = Pick<ConfiguredChain, 'sponsorKey' | 'ownerKey' | 'ownerKeyPrevious'>

/** Addresses of the keys that own the wallets of public chains; null: the sandbox's own key owns them. */
export async function readChainOwners(
  { chains: [first] }: Pick<Config, 'chains'>,
  keys: Parts['keys'],
): Promise<GatewayKeys | null> {
  const { owners } = await openSigners(first, keys)
  return owners === null
    ? null
    : {
        current: lowerCaseAddress(owners.current.address),
        previous: owners.previous === undefined ? null : lowerCaseAddress(owners.previous.address),
      }
}
