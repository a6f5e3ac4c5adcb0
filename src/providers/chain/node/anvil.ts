/**
 * Chain adapters: the port over anvil as a child process (this file), over another node (`rpc.ts`), and in memory
 * (`simulated.ts`). This folder may import the base, its port, viem and the contracts' packages. It owns every key and
 * address of the chain; nothing outside knows that there are Safes, operations or a relayer.
 */
import type { Log } from '../../../base/log.ts'
import type { Chain } from '../../chain.ts'
import { createEvmChain } from '../evm-chain.ts'
import { newSandboxSeed } from '../keys.ts'
import { createGate, type Opened } from '../relay/gate.ts'
import { createNodeClient, nearby } from '../rpc/client.ts'
import { silenceNode } from '../rpc/development-node.ts'
import { sandboxTokenAddresses } from '../rpc/networks.ts'
import { type AnvilProcess, findAnvil, spawnAnvil } from './anvil-process.ts'
import { openDevelopmentSession } from './development-session.ts'
import type { EvmSession } from './evm-session.ts'

/** How to start it. @property binary by default that of the optional dependency `@foundry-rs/anvil`. */
export interface AnvilChainOptions {
  readonly log: Log
  readonly binary?: string | null | undefined
  /** How long calls wait for a chain that is being brought back; 4,000 by default. */
  readonly waitMs?: number | undefined
}

/**
 * Starts anvil, sets the sandbox chain up and keeps it alive: where the process dies, another one takes its place on the
 * same port, empty, and is brought up to the books before anybody else may use it. It dies with this process.
 * @throws Error that says what to do where there is no binary, or it does not start.
 */
export async function startAnvilChain({ log, binary, waitMs = 4_000 }: AnvilChainOptions): Promise<Chain> {
  const path = findAnvil(binary)
  const seed = newSandboxSeed()
  let anvil: AnvilProcess | undefined
  let port = 0
  let isClosed = false

  async function open(): Promise<Opened<EvmSession>> {
    await anvil?.stop()
    const started = await spawnAnvil(path, port, 10_000).catch((error: unknown) => {
      // Should somebody have taken the port meanwhile, any other will do the next time.
      port = 0
      throw error
    })
    anvil = started
    port = started.port
    if (isClosed) await started.stop()
    const client = createNodeClient(nearby(started.url))
    await silenceNode(client)
    const session = await openDevelopmentSession(client, seed)
    log.info({ pid: started.pid, url: started.url }, 'chain is up')
    return { session, isFresh: true, lost: started.exited }
  }

  const gate = createGate({ open, log, waitMs, firstPauseMs: 50, longestPauseMs: 5_000 })
  try {
    const first = await gate.start()
    return createEvmChain({
      gate,
      first,
      tokens: sandboxTokenAddresses,
      rpcUrl: () => anvil?.url ?? '',
      // The process's end is noticed by itself; an answer that took too long is no reason to end it.
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
