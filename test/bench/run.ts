/** `npm run bench`: every figure as a ratio to a floor that is measured in the same run. Bounded; stops by itself. */

import { createTestDatabase } from '../engines.ts'
import { benchCards, cardBenchText } from './cards.ts'
import { benchChain, chainBenchText } from './chain.ts'
import { benchInvesting } from './investing.ts'
import { benchLimiter } from './limiter.ts'
import { benchMcp, mcpBenchText } from './mcp.ts'
import { benchPolicy } from './policy.ts'
import { benchSpend, spendBenchText } from './spend.ts'
import { benchTransfer } from './transfer.ts'
import { benchX402, x402BenchText } from './x402.ts'

const serverUrl = process.env.TEST_DATABASE_URL ?? 'postgres://postgres@127.0.0.1:5432/postgres'
const print = (text: string) => process.stdout.write(`${text}\n`)

print('Signed transfers against a bare Hono route (autocannon, 16 connections, 2,000 requests)')
const [floor, ...transfers] = await benchTransfer(serverUrl)
if (floor === undefined) throw new Error('the bare route was not measured')
print(`  ${floor.name}: ${floor.rate.toFixed(0)}/s, p50 ${floor.p50} ms, p99 ${floor.p99} ms`)
for (const { name, rate, p50, p99 } of transfers)
  print(
    `  ${name}: ${rate.toFixed(0)}/s, p50 ${p50} ms, p99 ${p99} ms, ratio ${(rate / floor.rate).toFixed(3)}`,
  )

print('Spends through the queue against pgbench calling the same function one by one (PostgreSQL)')
const spends = (await benchSpend()).lines
for (const line of spends) print(`  ${spendBenchText(line)}`)
const [pgbench, whole] = [spends[0], transfers.at(-1)]
if (pgbench !== undefined && whole !== undefined)
  print(
    `  ${whole.name}, simulated chain: ${whole.rate.toFixed(0)}/s, ratio ${(whole.rate / pgbench.floor).toFixed(3)} to pgbench`,
  )

print('Decisions on card purchases, open loop (PostgreSQL)')
for (const line of await benchCards(serverUrl)) print(`  ${cardBenchText(line)}`)

print('Confirmed transfers on the local chain against its own rate for the same ERC-20 transfer (64 senders)')
for (const line of await benchChain(serverUrl)) print(`  ${chainBenchText(line)}`)

const { evaluationMicros, parseMicros } = benchPolicy()
print('A spend policy with every rule')
print(
  `  evaluated: ${evaluationMicros.toFixed(2)} µs a spend; parsed: ${parseMicros.toFixed(1)} µs a version`,
)

print('x402 against the stock middlewares on the same chain (ratio above 1: slower than stock)')
for (const line of await benchX402(null)) print(`  PGlite, ${x402BenchText(line)}`)
const ledger = await createTestDatabase(serverUrl)
try {
  for (const line of await benchX402(ledger.url)) print(`  PostgreSQL, ${x402BenchText(line)}`)
} finally {
  await ledger.drop()
}

print('Counting one request, 16 callers')
const { memory, redis, incr } = await benchLimiter(process.env.TEST_REDIS_URL)
print(`  memory: ${memory.toFixed(2)} µs`)
if (redis !== null && incr !== null)
  print(
    `  Redis: ${redis.toFixed(1)} µs; bare INCR: ${incr.toFixed(1)} µs; ratio ${(redis / incr).toFixed(2)}`,
  )

print('MCP in one process: processor time a request')
for (const line of mcpBenchText(await benchMcp())) print(`  ${line}`)

print('Investing and swaps (PostgreSQL, 16 people at once)')
const investing = await benchInvesting(serverUrl)
const floorText =
  pgbench === undefined ? '' : `, ratio ${(investing.orders / pgbench.floor).toFixed(3)} to pgbench`
print(`  orders through the whole path: ${investing.orders.toFixed(0)}/s${floorText}`)
print(`  a swap quote: ${investing.quoteOverheadMs.toFixed(1)} ms over its slowest aggregator`)
