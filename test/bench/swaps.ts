/**
 * A swap of the wallet from its quote to its confirmation, one at a time over HTTP, to a bare ERC-20 transfer on the same node from
 * sending to its receipt, in turn. On a node that mines at once, and on one with a block each two seconds, as Base has.
 */
import { pathToFileURL } from 'node:url'
import { findAnvil, spawnAnvil } from '../../src/chain/node/anvil-process.ts'
import { connectRpcChain } from '../../src/chain/rpc.ts'
import { systemClock } from '../../src/core/base/clock.ts'
import { silentLog } from '../../src/core/base/log.ts'
import { createTestDatabase } from '../engines.ts'
import { startGateway } from '../journeys/gateway.ts'
import { newGuest, requestJson } from '../journeys/people.ts'
import { bareSenders } from './chain.ts'
import { percentile } from './load.ts'

/** @property ours median milliseconds of a swap. @property floor of a bare transfer. */
export interface SwapBenchLine {
  readonly name: string
  readonly ours: number
  readonly floor: number
}

const settings = [
  { name: 'a block for each transaction', blockSeconds: 0, times: 20 },
  { name: 'a block each two seconds', blockSeconds: 2, times: 12 },
] as const

const POLL_MS = 50

/** Runs the benchmark. @param serverUrl of the PostgreSQL server. */
export async function benchSwaps(serverUrl: string): Promise<readonly SwapBenchLine[]> {
  const node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000)
  const database = await createTestDatabase(serverUrl)
  const gateway = await startGateway({
    CHAIN: '',
    CHAIN_RPC_URL: node.url,
    DATABASE_URL: database.url,
    RATE_MUTATIONS: '100000/60',
  })
  try {
    const swap = await openSwapper(gateway.origin)
    const send = await openSender(node.url)
    const lines: SwapBenchLine[] = []
    for (const { name, blockSeconds, times } of settings) {
      if (blockSeconds > 0) await rpc(node.url, 'evm_setIntervalMining', [blockSeconds])
      for (let warm = 0; warm < 3; warm += 1) await swap()
      const [ours, floor]: [number[], number[]] = [[], []]
      for (let at = 0; at < times; at += 1) {
        ours.push(await clock(swap))
        floor.push(await clock(send))
      }
      lines.push({ name, ours: percentile(ours, 0.5), floor: percentile(floor, 0.5) })
    }
    return lines
  } finally {
    await gateway.stop()
    await database.drop()
    await node.stop()
  }
}

async function clock(work: () => Promise<unknown>): Promise<number> {
  // Not in step with the blocks.
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 500))
  const start = performance.now()
  await work()
  return performance.now() - start
}

async function openSwapper(origin: string): Promise<() => Promise<unknown>> {
  const owner = await newGuest(origin)
  const { body: made } = await owner.send('POST', '/api/developer/keys', {
    name: 'Bench',
    scopes: ['swaps:quote', 'swaps:execute'],
    policy: {
      perTransaction: { max: '10' },
      dailyBudget: { max: '500' },
      categories: { allow: ['swap'] },
    },
  })
  const authorization = `Bearer ${String(made.key)}`
  const send = (path: string, body: object) =>
    requestJson(origin, 'POST', path, {
      body,
      headers: { authorization, 'idempotency-key': crypto.randomUUID() },
    })
  return async () => {
    const pair = { fromToken: 'USDC', toToken: 'EURC', fromChain: 'base-sepolia', amountIn: '1' }
    const { body: quote } = await send('/api/swaps', pair)
    let { body } = await send('/api/swaps/orders', { quoteId: quote.id })
    while (body.status === 'submitted') {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
      const path = `/api/swaps/orders/${String(body.swapId)}`
      body = (await requestJson(origin, 'GET', path, { headers: { authorization } })).body
    }
    if (body.status !== 'confirmed') throw new Error(`a swap was not confirmed: ${JSON.stringify(body)}`)
  }
}

async function openSender(url: string): Promise<() => Promise<void>> {
  const chain = await connectRpcChain({ name: 'base-sepolia', url, clock: systemClock, log: silentLog })
  const send = await bareSenders(url, chain, 1)
  await chain.close()
  return () => send(0)
}

async function rpc(url: string, method: string, params: unknown[]): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const answer = await response.text()
  if (answer.includes('"error"')) throw new Error(`${method}: ${answer}`)
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  for (const { name, ours, floor } of await benchSwaps(process.env.TEST_DATABASE_URL ?? ''))
    process.stdout.write(
      `${name}: ${ours.toFixed(0)} ms, bare ${floor.toFixed(0)} ms, ratio ${(ours / floor).toFixed(2)}\n`,
    )
