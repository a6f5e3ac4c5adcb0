/**
 * x402 against the stock middlewares on the same chain, in one run: the cost of a challenge, and of a paid call
 * (challenge, signature, settlement) with unmodified clients. The subjects alternate, so that all are measured on the
 * same machine load.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import autocannon from 'autocannon'
import { z } from 'zod'
import { connectRpcChain } from '../../src/chain/rpc.ts'
import { systemClock } from '../../src/core/base/clock.ts'
import { silentLog } from '../../src/core/base/log.ts'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { type Customer, newCustomer } from '../rails/selling/x402/scene.ts'

const CHALLENGES = 4_000
const PAYMENTS = 120
const WARM_UP = 20
const QUERY = '?from=USD&to=EUR&amount=100'

/** One line: ours over the stock one. Latencies are medians in milliseconds, rates a second. */
export interface X402Line {
  readonly name: string
  readonly stock: number
  readonly ours: number
  readonly unit: 'ms' | '/s'
}

/**
 * Opens a chain with a gateway and the stock seller on it. @param databaseUrl a PostgreSQL for the gateway; null for PGlite.
 * @param limit name of the rate limit that the bench would reach.
 */
export async function openBench({ databaseUrl, limit }: { databaseUrl: string | null; limit: string }) {
  const host = await startGateway()
  const opened: (() => unknown)[] = [() => host.stop()]
  const close = async () => {
    for (const end of opened.reverse()) await end()
  }
  try {
    const rpcUrl = await readRpcUrl(host)
    const chain = await connectRpcChain({
      name: 'base-sepolia',
      url: rpcUrl,
      clock: systemClock,
      log: silentLog,
    })
    opened.push(() => chain.close())
    const gateway = await startGateway({
      CHAIN_RPC_URL: rpcUrl,
      [limit]: '9999999/60',
      ...(databaseUrl === null ? {} : { DATABASE_URL: databaseUrl }),
    })
    opened.push(() => gateway.stop())
    const child = startStock(rpcUrl)
    opened.push(() => child.kill())
    return { chain, gateway, child, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Measures on a new chain. @param databaseUrl a PostgreSQL for the ledger of payments; null for PGlite. */
export async function benchX402(databaseUrl: string | null): Promise<readonly X402Line[]> {
  const { chain, gateway, child, close } = await openBench({ databaseUrl, limit: 'RATE_FX' })
  try {
    const stock = await readOrigin(child)
    const ours = `${gateway.origin}/api/x402/fx${QUERY}`
    const lines: X402Line[] = []
    for (const generation of ['v1', 'v2'] as const) {
      const theirs = `${stock}/${generation}/fx${QUERY}`
      const challenges = await inTurns([theirs, ours], challenge)
      const [their, our] = challenges
      lines.push(
        { name: `${generation} challenge, one client`, stock: their.ms, ours: our.ms, unit: 'ms' },
        { name: `${generation} challenge, 16 clients`, stock: their.rate, ours: our.rate, unit: '/s' },
      )
      const customer = await newCustomer(chain, 1_000_000_000n)
      const [their2, our2] = await payInTurns(customer[generation], [theirs, ours])
      lines.push({ name: `${generation} paid call`, stock: their2, ours: our2, unit: 'ms' })
    }
    return lines
  } finally {
    await close()
  }
}

/** The printed line. A ratio above 1 is slower than stock. */
export function x402BenchText({ name, stock, ours, unit }: X402Line): string {
  const ratio = unit === 'ms' ? ours / stock : stock / ours
  const figure = (value: number) => `${value.toFixed(unit === 'ms' ? 2 : 0)} ${unit}`.replace(' /s', '/s')
  return `${name}: stock ${figure(stock)}, ours ${figure(ours)}, ratio ${ratio.toFixed(2)}`
}

export async function readRpcUrl({ origin }: Gateway): Promise<string> {
  const answer = await (await fetch(`${origin}/sandbox/credentials`)).json()
  return z.object({ chain: z.object({ rpcUrl: z.string() }) }).parse(answer).chain.rpcUrl
}

/** Starts the stock sellers over a chain. */
export function startStock(rpcUrl: string): ChildProcess {
  return spawn(process.execPath, ['--import', 'tsx', 'test/bench/stock-x402.ts'], {
    env: { ...process.env, CHAIN_RPC_URL: rpcUrl },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

export function readOrigin({ stdout }: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    stdout?.setEncoding('utf8').on('data', (text: string) => {
      const origin = /is up at (\S+)/.exec(text)?.[1]
      if (origin !== undefined) resolve(origin)
    })
  })
}

interface Challenged {
  readonly ms: number
  readonly rate: number
}

/** The better of two rounds for each, alternating. */
async function inTurns(
  [theirs, ours]: readonly [string, string],
  measure: (url: string) => Promise<Challenged>,
): Promise<[Challenged, Challenged]> {
  const rounds: [Challenged, Challenged][] = []
  await measure(theirs)
  await measure(ours)
  for (let round = 0; round < 2; round += 1) rounds.push([await measure(theirs), await measure(ours)])
  const best = (at: 0 | 1) => ({
    ms: Math.min(...rounds.map((round) => round[at].ms)),
    rate: Math.max(...rounds.map((round) => round[at].rate)),
  })
  return [best(0), best(1)]
}

async function challenge(url: string): Promise<Challenged> {
  const times: number[] = []
  for (let count = 0; count < 400; count += 1) {
    const start = performance.now()
    const response = await fetch(url)
    await response.text()
    times.push(performance.now() - start)
    if (response.status !== 402) throw new Error(`${url} answered ${response.status}`)
  }
  return { ms: median(times), rate: await measureRate(url) }
}

/** Requests a second, to the last answer: autocannon's own time ends with its sampling interval. */
async function measureRate(url: string): Promise<number> {
  const start = performance.now()
  let end = start
  await new Promise<void>((resolve, reject) => {
    const run = autocannon({ url, connections: 16, amount: CHALLENGES }, (error) =>
      error === null || error === undefined ? resolve() : reject(error),
    )
    run.on('response', () => {
      end = performance.now()
    })
  })
  return CHALLENGES / ((end - start) / 1_000)
}

/** Medians of whole purchases, one after the other, alternating. */
async function payInTurns(
  pay: Customer['v1'],
  [theirs, ours]: readonly [string, string],
): Promise<[number, number]> {
  const times: [number[], number[]] = [[], []]
  for (let count = 0; count < PAYMENTS + WARM_UP; count += 1) {
    for (const [at, url] of [theirs, ours].entries()) {
      const start = performance.now()
      const response = await pay(url)
      await response.text()
      const took = performance.now() - start
      if (response.status !== 200) throw new Error(`${url} was not paid: ${response.status}`)
      if (count >= WARM_UP) times[at === 0 ? 0 : 1].push(took)
    }
  }
  return [median(times[0]), median(times[1])]
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}
