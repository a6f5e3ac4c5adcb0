/**
 * Orders through the whole path (HTTP, policy, hold, broker, fill, books) on PostgreSQL, and a swap quote's overhead
 * over the slowest aggregator. `npx tsx test/bench/investing.ts`, about 20 seconds.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { createTestDatabase } from '../engines.ts'
import { startGateway } from '../journeys/gateway.ts'
import { newGuest, type Person } from '../journeys/people.ts'

const PEOPLE = 16
const ORDERS_EACH = 40
/** As many as the transfers' bench sends before it measures: code and statements are compiled by then. */
const WARM_UP_EACH = 25
const QUOTES = 40
const SLOWEST_MS = 50

/** Orders a second, and the overhead of a quote over its slowest aggregator in milliseconds. */
export async function benchInvesting(
  serverUrl: string,
): Promise<{ readonly orders: number; readonly quoteOverheadMs: number }> {
  const { url, drop } = await createTestDatabase(serverUrl)
  const vendor = createServer(async (_request, response) => {
    await sleep(SLOWEST_MS)
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"message":"no route"}')
  }).listen(0, '127.0.0.1')
  await once(vendor, 'listening')
  // A listening server has an address object with a port.
  const { port } = vendor.address() as AddressInfo
  const env = { DATABASE_URL: url, CHAIN: 'simulated', RATE_MUTATIONS: '1000000/60' }
  const gateway = await startGateway(env)
  const quoting = await startGateway({
    ...env,
    SWAP_AGGREGATORS: 'lifi',
    LIFI_URL: `http://127.0.0.1:${port}`,
  })
  try {
    const people = await Promise.all(Array.from({ length: PEOPLE }, () => newGuest(gateway.origin)))
    await Promise.all(people.map((person) => buy(person, WARM_UP_EACH)))
    const start = performance.now()
    await Promise.all(people.map((person) => buy(person, ORDERS_EACH)))
    const orders = (PEOPLE * ORDERS_EACH * 1_000) / (performance.now() - start)
    return { orders, quoteOverheadMs: await quoteOverhead(await newGuest(quoting.origin)) }
  } finally {
    await quoting.stop()
    await gateway.stop()
    vendor.close().closeAllConnections()
    await drop()
  }
}

async function buy(person: Person, times: number): Promise<void> {
  for (let count = 0; count < times; count += 1) {
    const { status, body } = await person.send(
      'POST',
      '/api/investing/order',
      { symbol: 'VTI', side: 'buy', notional: '1' },
      { 'idempotency-key': randomUUID() },
    )
    if (status !== 200) throw new Error(`an order was refused: ${JSON.stringify(body)}`)
  }
}

async function quoteOverhead(person: Person): Promise<number> {
  const times: number[] = []
  for (let count = 0; count < QUOTES; count += 1) {
    const start = performance.now()
    await person.send('POST', '/api/swaps', {
      fromToken: 'USDC',
      toToken: 'USDT',
      fromChain: 'base',
      toChain: 'arbitrum',
      amountIn: String(100 + count),
    })
    const took = performance.now() - start
    // Once its breaker is open, a vendor is skipped.
    if (took >= SLOWEST_MS) times.push(took - SLOWEST_MS)
  }
  times.sort((left, right) => left - right)
  return times[Math.floor(times.length / 2)] ?? 0
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { orders, quoteOverheadMs } = await benchInvesting(
    process.env.TEST_DATABASE_URL ?? 'postgres://postgres@127.0.0.1:5432/postgres',
  )
  process.stdout.write(
    `orders: ${orders.toFixed(0)}/s; a swap quote: ${quoteOverheadMs.toFixed(1)} ms over its aggregator\n`,
  )
}
