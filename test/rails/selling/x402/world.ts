/** Chains and a facilitator that can be paused, to test the states in between. */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { x402Facilitator } from '@x402/core/facilitator'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { registerExactEvmScheme } from '@x402/evm/exact/facilitator'
import { Hono } from 'hono'
import { startAnvilChain } from '../../../../src/chain/node/anvil.ts'
import { findAnvil } from '../../../../src/chain/node/anvil-process.ts'
import { createSimulatedChain } from '../../../../src/chain/simulated/simulated.ts'
import { systemClock } from '../../../../src/core/base/clock.ts'
import { silentLog } from '../../../../src/core/base/log.ts'
import type { Chain, ContractCall, Hex } from '../../../../src/providers/chain/port.ts'
import { listen } from './scene.ts'

/** A chain whose blocks can be held back. @property sent number of payments that the gateway broadcast. */
export interface World {
  readonly chain: Chain
  readonly sent: () => number
  /** False if the hash is known only with the block, as with the development node's relayer. */
  readonly isHashKnown: boolean
  /** Accepts transactions without mining them from now on. */
  pause(): Promise<void>
  /** Mines pending transactions, and later ones at once. */
  resume(): Promise<void>
}

export function hasAnvil(): boolean {
  try {
    return findAnvil(process.env.ANVIL_BIN) !== ''
  } catch {
    return false
  }
}

function counting(chain: Chain): { chain: Chain; sent: () => number } {
  let sent = 0
  const writeContract = async (call: ContractCall) => {
    const hash = await chain.signer.writeContract(call)
    sent += 1
    return hash
  }
  return { chain: { ...chain, signer: { ...chain.signer, writeContract } }, sent: () => sent }
}

/** A real chain, whose mining is paused by its own RPC. */
export async function anvilWorld(): Promise<World> {
  const { chain, sent } = counting(
    await startAnvilChain({ name: 'base-sepolia', log: silentLog, binary: process.env.ANVIL_BIN }),
  )
  const rpc = async (method: string, params: unknown[] = []) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    await fetch(chain.rpcUrl ?? '', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
  }
  return {
    chain,
    sent,
    isHashKnown: false,
    pause: () => rpc('evm_setAutomine', [false]),
    resume: async () => {
      await rpc('evm_mine')
      await rpc('evm_setAutomine', [true])
    },
  }
}

/** The simulated chain with a mempool in front. */
export async function simulatedWorld(): Promise<World> {
  const inner = await createSimulatedChain({ clock: systemClock, log: silentLog })
  const pool = new Map<Hex, ContractCall>()
  const mined = new Set<Hex>()
  let isPaused = false
  const { chain, sent } = counting({
    ...inner,
    signer: {
      ...inner.signer,
      writeContract: async (call) => {
        if (!isPaused) return inner.signer.writeContract(call)
        const hash: Hex = `0x${randomBytes(32).toString('hex')}`
        pool.set(hash, call)
        return hash
      },
      waitForTransactionReceipt: async ({ hash, timeout = 30_000 }) => {
        for (let waited = 0; pool.has(hash) && waited < timeout; waited += 20) await sleep(20)
        if (pool.has(hash))
          throw Object.assign(new Error('not mined'), { name: 'WaitForTransactionReceiptTimeoutError' })
        return mined.has(hash) ? { status: 'success' } : inner.signer.waitForTransactionReceipt({ hash })
      },
    },
  })
  return {
    chain,
    sent,
    isHashKnown: true,
    pause: async () => {
      isPaused = true
    },
    resume: async () => {
      isPaused = false
      for (const [hash, call] of pool) {
        // The second submission finds the authorization spent, as on any chain.
        await inner.signer.writeContract(call).catch(() => {})
        mined.add(hash)
        pool.delete(hash)
      }
    },
  }
}

/**
 * Behaviour of a facilitator. `lost`: settles, and drops its answer. `slow`: settles, and answers after a long time.
 * `silent`: verifies, and neither settles nor answers a settle request.
 */
type Mood = 'up' | 'down' | 'lost' | 'slow' | 'silent'

/** A remote facilitator with a settable behaviour. @property settled number of settle requests. */
export interface RemoteFacilitator {
  readonly url: string
  readonly settled: () => number
  mood: Mood
  /** Checks the credentials of a request; by default none are needed. */
  admits: (authorization: string, request: { method: string; path: string }) => Promise<boolean>
  close(): Promise<void>
}

/** Serves the reference facilitator over a chain. */
export async function startFacilitator(chain: Chain): Promise<RemoteFacilitator> {
  const inner = registerExactEvmScheme(new x402Facilitator(), {
    signer: toFacilitatorEvmSigner(chain.signer),
    networks: 'eip155:84532',
  })
  let settled = 0
  const app = new Hono<{ Bindings: { incoming: { socket: { destroy(): void } } } }>()
  app.use(async (c, next) => {
    if (facilitator.mood === 'down') c.env.incoming.socket.destroy()
    const { method, path } = c.req
    if (!(await facilitator.admits(c.req.header('authorization') ?? '', { method, path })))
      return c.json({ error: 'unauthorized' }, 401)
    if (facilitator.mood === 'silent' && c.req.path === '/settle') await new Promise(() => {})
    return next()
  })
  app.post('/verify', async (c) => {
    const { paymentPayload, paymentRequirements } = await c.req.json()
    return c.json(await inner.verify(paymentPayload, paymentRequirements))
  })
  app.post('/settle', async (c) => {
    const { paymentPayload, paymentRequirements } = await c.req.json()
    const outcome = await inner.settle(paymentPayload, paymentRequirements)
    settled += 1
    if (facilitator.mood === 'slow') await sleep(30_000)
    if (facilitator.mood === 'lost') c.env.incoming.socket.destroy()
    return c.json(outcome)
  })
  const { server, port } = await listen(app)
  const facilitator: RemoteFacilitator = {
    url: `http://127.0.0.1:${port}`,
    settled: () => settled,
    mood: 'up',
    admits: async () => true,
    close: async () => {
      if ('closeAllConnections' in server) server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return facilitator
}
