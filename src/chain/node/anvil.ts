/**
 * Chain adapters: anvil as a child process (this file), an external node (`rpc.ts`), and in memory (`simulated.ts`).
 * This folder may import the base, its port, viem and the contracts' packages. It owns every key and address of the
 * chain; other folders do not depend on Safes, operations or relayers.
 */
import type { Log } from '../../core/base/log.ts'
import type { ChainName } from '../../core/money/chains.ts'
import type { Chain } from '../../providers/chain/port.ts'
import { createEvmChain } from '../evm-chain.ts'
import { newSandboxSeed } from '../keys.ts'
import { createGate, type Opened } from '../relay/gate.ts'
import { createNodeClient, localNodeOptions } from '../rpc/client.ts'
import { mineUniqueBlock, silenceNode } from '../rpc/development-node.ts'
import { mapAddresses, sandboxTokensOn } from '../rpc/networks.ts'
import { type AnvilProcess, findAnvil, spawnAnvil } from './anvil-process.ts'
import { openDevelopmentSession } from './development-session.ts'
import type { EvmSession } from './evm-session.ts'
import { findPreparedState, storePreparedState } from './prepared-state.ts'

/** Start options. @property binary by default that of the optional dependency `@foundry-rs/anvil`. */
export interface AnvilChainOptions {
  /** A test chain. */
  readonly name: ChainName
  readonly log: Log
  readonly binary?: string | null | undefined
  /** How long calls wait while the chain is being restored; 4,000 by default. */
  readonly waitMs?: number | undefined
  /** As in `evm-chain.ts`; true by default. */
  readonly hasCards?: boolean
}

/**
 * Starts anvil, sets up the sandbox chain and keeps it running. If the process dies, a new one starts empty on the
 * same port and is restored from the books before other calls pass. It ends with this process.
 * @throws Error with instructions when there is no binary, or it does not start.
 */
export async function startAnvilChain({
  name,
  log,
  binary,
  waitMs = 4_000,
  hasCards = true,
}: AnvilChainOptions): Promise<Chain> {
  const tokens = sandboxTokensOn(name)
  const path = findAnvil(binary)
  const seed = newSandboxSeed()
  let anvil: AnvilProcess | undefined
  let port = 0
  let isClosed = false

  async function open(): Promise<Opened<EvmSession>> {
    await anvil?.stop()
    const prepared = await findPreparedState(name, tokens)
    const flags = prepared.isMade ? ['--load-state', prepared.path] : []
    const started = await spawnAnvil(path, port, 10_000, name, flags).catch((error: unknown) => {
      // If another process has taken the port in the meantime, the next attempt uses any free one.
      port = 0
      throw error
    })
    anvil = started
    port = started.port
    if (isClosed) await started.stop()
    const client = createNodeClient(localNodeOptions(name, started.url))
    await silenceNode(client)
    const session = await openDevelopmentSession(client, seed, tokens, prepared.isMade)
    // Gateways that share a node recognise its chain by the first mined block.
    if (prepared.isMade) await mineUniqueBlock(client)
    else await storePreparedState(client, prepared, name)
    log.info({ chain: name, pid: started.pid, url: started.url }, 'chain is up')
    return { session, isFresh: true, lost: started.exited }
  }

  const gate = createGate({ open, log, waitMs, firstPauseMs: 50, longestPauseMs: 5_000 })
  try {
    const first = await gate.start()
    return createEvmChain({
      gate,
      first,
      name,
      hasCards,
      tokens: mapAddresses(tokens),
      rpcUrl: () => anvil?.url ?? '',
      // The process's exit is detected directly; a slow answer is no reason to end it.
      suspect: () => undefined,
      async close() {
        isClosed = true
        await anvil?.stop()
      },
    })
  } catch (error) {
    await anvil?.stop()
    throw error
  }
}
