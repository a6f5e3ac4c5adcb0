/** The chain over an external node: a development node is set up as needed, a public one is checked. */
import type { Clock } from '../core/base/clock.ts'
import type { Log } from '../core/base/log.ts'
import { timers } from '../core/base/timers.ts'
import { type ChainName, chainFacts, nameRpcVariable } from '../core/money/chains.ts'
import type { Chain, Hex } from '../providers/chain/port.ts'
import type { ChainKey } from '../providers/keys/port.ts'
import type { KeyRing } from './accounts/key-ring.ts'
import { createEvmChain } from './evm-chain.ts'
import { newSandboxSeed } from './keys.ts'
import { openDevelopmentSession } from './node/development-session.ts'
import type { EvmSession } from './node/evm-session.ts'
import { openPublicSession } from './node/public-session.ts'
import { createGate, type Opened } from './relay/gate.ts'
import {
  createNodeClient,
  isTimeout,
  localNodeOptions,
  type NodeClient,
  remoteNodeOptions,
  requireChainId,
} from './rpc/client.ts'
import { isDevelopmentNode } from './rpc/development-node.ts'
import { type AccountContracts, canonicalContracts, mapAddresses, sandboxTokensOn } from './rpc/networks.ts'

/** Connection to a node, with the configuration of public chains. */
export interface RpcChainOptions {
  readonly name: ChainName
  /** Environment variable with the URL, for messages; by default that of the chain. */
  readonly variable?: string
  readonly url: string
  readonly clock: Clock
  readonly log: Log
  /** Pays for gas; required on public chains only. */
  readonly sponsor?: ChainKey | null | undefined
  /** Own the Safes of a public chain; by default the sponsor does. */
  readonly owners?: KeyRing | null | undefined
  /** keccak256 of the code that a public chain's contracts of `upto` payments may have; none by default. */
  readonly x402Hashes?: readonly Hex[] | undefined
  /** Addresses of a public chain's contracts, where they differ from the usual ones. */
  readonly contracts?: Partial<AccountContracts> | undefined
  /** How long calls wait for a node that does not answer; 4,000 by default. */
  readonly waitMs?: number | undefined
  /** As in `evm-chain.ts`; true by default. */
  readonly hasCards?: boolean
}

/** How often a start asks a node that does not answer in time. */
const START_ATTEMPTS = 4

/** Interval of the identity check of a development node, which its operator may restart empty. */
const WATCH_MS = 2_000

/**
 * Connects to a node.
 * @throws Error listing everything that is missing: the right chain id, a sponsor key, contracts.
 */
export async function connectRpcChain(options: RpcChainOptions): Promise<Chain> {
  const { name, url, clock, log, sponsor, owners, waitMs = 4_000, hasCards = true } = options
  const { variable = nameRpcVariable(name) } = options
  const facts = chainFacts(name)
  const contracts = { ...canonicalContracts, ...options.contracts }
  const seed = newSandboxSeed()
  const closing = new AbortController()
  let knownChain: Hex | undefined

  // Contracts and keys of the sandbox have no place on a chain with real money, not even on a copy of one.
  const isDevelopment =
    facts.isTest && (await patiently(() => isDevelopmentNode(createNodeClient(remoteNodeOptions(name, url)))))
  const client = createNodeClient(isDevelopment ? localNodeOptions(name, url) : remoteNodeOptions(name, url))
  const sandboxTokens = sandboxTokensOn(name)
  const tokens = mapAddresses(isDevelopment ? sandboxTokens : facts.tokens)

  async function open(): Promise<Opened<EvmSession>> {
    if (!isDevelopment) {
      const session = await openPublicSession(
        { client, clock, log },
        { variable, contracts, tokens, sponsor, owners, x402Hashes: new Set(options.x402Hashes) },
      )
      return { session, isFresh: false }
    }
    await requireChainId(client, variable)
    const session = await openDevelopmentSession(client, seed, sandboxTokens)
    const chain = await readIdentity(client)
    const isFresh = chain !== knownChain
    knownChain = chain
    return { session, isFresh, lost: watch(chain) }
  }

  /** Settles when the node's chain has changed, or it does not answer. */
  async function watch(chain: Hex): Promise<void> {
    while (!closing.signal.aborted) {
      await timers.sleep(WATCH_MS, { isIdle: true, signal: closing.signal }).catch(() => undefined)
      if (closing.signal.aborted) return
      if ((await readIdentity(client).catch(() => undefined)) !== chain) return
    }
  }

  const gate = createGate({ open, log, waitMs, firstPauseMs: 50, longestPauseMs: 5_000 })
  const first = await patiently(() => gate.start())
  log.info({ chain: name, url: new URL(url).origin, isDevelopment }, 'the chain is connected')
  return createEvmChain({
    gate,
    first,
    name,
    hasCards,
    tokens,
    // A public node's URL may contain an API key.
    rpcUrl: () => (isDevelopment ? url : null),
    suspect: (session) => gate.lose(session),
    async close() {
      closing.abort()
    },
  })
}

/** Repeats work on a node that is too busy to answer in time: that says nothing against the configuration. */
async function patiently<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let left = START_ATTEMPTS - 1; ; left -= 1)
    try {
      return await work()
    } catch (error) {
      if (left === 0 || !isTimeout(error)) throw error
    }
}

/** Reads the first mined block, which two runs of a development node never share. */
async function readIdentity(client: NodeClient): Promise<Hex> {
  const { hash } = await client.getBlock({ blockNumber: 1n })
  return hash
}
