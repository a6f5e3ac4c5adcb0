/** The chain over an external node: a development node is set up as needed, a public one is checked. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Chain, Hex } from '../chain.ts'
import { createEvmChain } from './evm-chain.ts'
import { newSandboxSeed } from './keys.ts'
import { openDevelopmentSession } from './node/development-session.ts'
import type { EvmSession } from './node/evm-session.ts'
import { openPublicSession } from './node/public-session.ts'
import { createGate, type Opened } from './relay/gate.ts'
import { createNodeClient, localNodeOptions, type NodeClient, remoteNodeOptions } from './rpc/client.ts'
import { isDevelopmentNode } from './rpc/development-node.ts'
import {
  type AccountContracts,
  baseSepolia,
  canonicalContracts,
  sandboxTokenAddresses,
  type TokenAddresses,
} from './rpc/networks.ts'

/** Connection to a node, with the configuration of public chains. */
export interface RpcChainOptions {
  readonly url: string
  readonly clock: Clock
  readonly log: Log
  /** Private key that pays for gas; required on public chains only. */
  readonly sponsorKey?: string | null | undefined
  /** Private key that owns the Safes of a public chain; the sponsor's by default. */
  readonly ownerKey?: string | null | undefined
  /** Addresses of a public chain's contracts, where they differ from the usual ones. */
  readonly contracts?: Partial<AccountContracts> | undefined
  readonly tokens?: Partial<TokenAddresses> | undefined
  /** How long calls wait for a node that does not answer; 4,000 by default. */
  readonly waitMs?: number | undefined
}

/** Interval of the identity check of a development node, which its operator may restart empty. */
const WATCH_MS = 2_000

/**
 * Connects to a node.
 * @throws Error listing everything that is missing: the right chain id, a sponsor key, contracts.
 */
export async function connectRpcChain(options: RpcChainOptions): Promise<Chain> {
  const { url, clock, log, sponsorKey, ownerKey, waitMs = 4_000 } = options
  const tokens = { ...sandboxTokenAddresses, ...options.tokens }
  const contracts = { ...canonicalContracts, ...options.contracts }
  const seed = newSandboxSeed()
  const closing = new AbortController()
  let knownChain: Hex | undefined

  const isDevelopment = await isDevelopmentNode(createNodeClient(remoteNodeOptions(url)))
  const client = createNodeClient(isDevelopment ? localNodeOptions(url) : remoteNodeOptions(url))

  async function open(): Promise<Opened<EvmSession>> {
    if (!isDevelopment) {
      const session = await openPublicSession(
        { client, clock, log },
        { contracts, tokens, sponsorKey, ownerKey },
      )
      return { session, isFresh: false }
    }
    const chainId = await client.getChainId()
    if (chainId !== baseSepolia.id)
      throw new Error(
        `The node at CHAIN_RPC_URL has chain id ${chainId}; start it with --chain-id ${baseSepolia.id}.`,
      )
    const session = await openDevelopmentSession(client, seed)
    const chain = await identityOf(client)
    const isFresh = chain !== knownChain
    knownChain = chain
    return { session, isFresh, lost: watch(chain) }
  }

  /** Settles when the node's chain has changed, or it does not answer. */
  async function watch(chain: Hex): Promise<void> {
    while (!closing.signal.aborted) {
      await sleep(WATCH_MS, undefined, { ref: false, signal: closing.signal }).catch(() => undefined)
      if (closing.signal.aborted) return
      if ((await identityOf(client).catch(() => undefined)) !== chain) return
    }
  }

  const gate = createGate({ open, log, waitMs, firstPauseMs: 50, longestPauseMs: 5_000 })
  const first = await gate.start()
  log.info({ url: new URL(url).origin, isDevelopment }, 'the chain is connected')
  return createEvmChain({
    gate,
    first,
    tokens: isDevelopment ? sandboxTokenAddresses : tokens,
    // A public node's URL may contain an API key.
    rpcUrl: () => (isDevelopment ? url : null),
    suspect: (session) => gate.lose(session),
    async close() {
      closing.abort()
    },
  })
}

/** Reads the first mined block, which two runs of a development node never share. */
async function identityOf(client: NodeClient): Promise<Hex> {
  const { hash } = await client.getBlock({ blockNumber: 1n })
  return hash
}
