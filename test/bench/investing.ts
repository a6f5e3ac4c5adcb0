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
import { backendsMs, processorMs, shoot } from './load.ts'

const PEOPLE = 16
const ORDERS_EACH = 40
/** As many as the transfers' bench sends before it measures: code and statements are compiled by then. */
const WARM_UP_EACH = 25
/** Once V8 has compiled what an order runs. */
const WARM_EACH = 100
const QUOTES = 40
const SLOWEST_MS = 50

/**
 * @property orders a second, and @property warm once a thousand have passed. @property gatewayMs and @property databaseMs
 * processor time of a warm one. @property quoteOverheadMs of a swap quote, over its slowest aggregator.
 */
export interface InvestingFigures {
  readonly orders: number
  readonly warm: number
  readonly gatewayMs: number
  readonly databaseMs: number
  readonly quoteOverheadMs: number
}

export async function benchInvesting(serverUrl: string): Promise<InvestingFigures> {
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
    await buy(gateway.origin, people, WARM_UP_EACH)
    const orders = await buy(gateway.origin, people, ORDERS_EACH)
    const readUsage = () => [processorMs(gateway.process.pid), backendsMs(new URL(url).pathname.slice(1))]
    const [gatewayBefore = 0, databaseBefore = 0] = readUsage()
    const warm = await buy(gateway.origin, people, WARM_EACH)
    const [gatewayAfter = 0, databaseAfter = 0] = readUsage()
    return {
      orders,
      warm,
      gatewayMs: (gatewayAfter - gatewayBefore) / (PEOPLE * WARM_EACH),
      databaseMs: (databaseAfter - databaseBefore) / (PEOPLE * WARM_EACH),
      quoteOverheadMs: await quoteOverhead(await newGuest(quoting.origin)),
    }
  } finally {
    await quoting.stop()
    await gateway.stop()
    vendor.close().closeAllConnections()
    await drop()
  }
}

/** Orders of all people, each person's one after another on a connection of their own. @returns orders a second. */
async function buy(origin: string, people: readonly Person[], times: number): Promise<number> {
  const count = people.length * times
  let client = 0
  const { seconds } = await shoot('orders', { origin, connections: people.length }, count, () => ({
    setupClient: (connection) => {
      const authorization = `Bearer ${people[client]?.token}`
      client += 1
      connection.setRequests(
        Array.from({ length: times }, () => ({
          method: 'POST',
          path: '/api/investing/order',
          headers: { authorization, 'content-type': 'application/json', 'idempotency-key': randomUUID() },
          body: JSON.stringify({ symbol: 'VTI', side: 'buy', notional: '1' }),
        })),
      )
    },
  }))
  return count / seconds
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
  const { orders, warm, gatewayMs, databaseMs, quoteOverheadMs } = await benchInvesting(
    process.env.TEST_DATABASE_URL ?? 'postgres://postgres@127.0.0.1:5432/postgres',
  )
  process.stdout.write(
    `orders: ${orders.toFixed(0)}/s, warm ${warm.toFixed(0)}/s; processor time ${gatewayMs.toFixed(2)} ms, of the database ${databaseMs.toFixed(2)} ms; a swap quote: ${quoteOverheadMs.toFixed(1)} ms over its aggregator\n`,
  )
}
