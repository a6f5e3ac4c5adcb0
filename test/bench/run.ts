/**
 * `npm run bench`: one table, every line a ratio to a floor or a peer that is measured in the same run. Bounded to
 * about ten minutes. Progress goes to standard error; the table to standard output and to `RESULTS.md`.
 */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import pg from 'pg'
import { z } from 'zod'
import { createTestDatabase } from '../engines.ts'
import { benchCards } from './cards.ts'
import { benchChain } from './chain.ts'
import { benchDeposits } from './deposits.ts'
import { benchEvents } from './events.ts'
import { benchInvesting } from './investing.ts'
import { benchLimiter } from './limiter.ts'
import { benchMcp } from './mcp.ts'
import { benchPolicy } from './policy.ts'
import { benchPurchases } from './purchases.ts'
import { benchEmbedded, benchRest } from './rest.ts'
import { benchRoundTrips } from './round-trips.ts'
import { benchScaling } from './scaling.ts'
import { benchPaths, benchSpend } from './spend.ts'
import { benchStarts } from './starts.ts'
import { benchSwaps } from './swaps.ts'
import { benchTransfer } from './transfer.ts'
import { benchX402 } from './x402.ts'

/**
 * One line. @property ratio ours to the floor's or the peer's, as its part's heading says; null for a figure without a
 * reference.
 */
interface Row {
  readonly what: string
  readonly ours: string
  readonly floor: string
  readonly ratio: number | null
}

interface Part {
  readonly title: string
  readonly rows: readonly Row[]
}

const serverUrl = process.env.TEST_DATABASE_URL ?? 'postgres://postgres@127.0.0.1:5432/postgres'
const started = performance.now()
const progress = (text: string) =>
  process.stderr.write(`[${((performance.now() - started) / 1_000).toFixed(0).padStart(4)} s] ${text}\n`)
const perSecond = (rate: number) => `${rate.toFixed(0)}/s`
const ms = (time: number) => `${time.toFixed(1)} ms`
const micros = (time: number) => `${time.toFixed(time < 10 ? 2 : 0)} µs`
const parts: Part[] = []
const add = (title: string, rows: readonly Row[]) => {
  parts.push({ title, rows })
  progress(`${title}: ${rows.map(({ ratio }) => (ratio === null ? '–' : ratio.toFixed(2))).join(' ')}`)
}

// First: it counts processor time, which would include collecting the garbage of other parts.
progress('MCP')
const mcp = await benchMcp()
const findMicros = (start: string) => mcp.find(({ name }) => name.startsWith(start))?.micros ?? Number.NaN
const bareServer = findMicros('a bare')
add('MCP in one process, processor time a request, to a bare SDK server with one echo tool', [
  ...mcp.map(({ name, micros: time }) => ({
    what: name,
    ours: micros(time),
    floor: micros(bareServer),
    ratio: time / bareServer,
  })),
  ...mcp
    .filter(({ name }) => name.startsWith('tools/call'))
    .map(({ name, micros: time }) => ({
      what: `${name}, less the operation itself`,
      ours: micros(time - findMicros('the operation')),
      floor: micros(bareServer),
      ratio: (time - findMicros('the operation')) / bareServer,
    })),
])

progress('starts')
const starts = await benchStarts()
add('A new sandbox (database in memory, local chain) until it serves, to Node alone', [
  {
    what: 'time',
    ours: ms(starts.wallMs),
    floor: ms(starts.floorMs),
    ratio: starts.wallMs / starts.floorMs,
  },
  { what: 'processor time, with the chain', ours: ms(starts.processorMs), floor: '', ratio: null },
])

progress('spends')
const spends = (await benchSpend()).lines
add(
  'Spends a second through the queue, to pgbench calling the same function (PostgreSQL, fsync on)',
  spends.map(({ name, ours, floor, ratio }) => ({
    what: name,
    ours: perSecond(ours),
    floor: perSecond(floor),
    ratio,
  })),
)
const pgbench = spends[0]?.floor ?? Number.NaN

progress('paths of keys')
add(
  'Spends a second of keys below others, through the same queue, to those of keys without a path',
  (await benchPaths()).lines.map(({ name, ours, floor, ratio }) => ({
    what: name,
    ours: perSecond(ours),
    floor: perSecond(floor),
    ratio,
  })),
)

progress('transfers')
const [bare, bareWarm, ...transfers] = await benchTransfer(serverUrl)
if (bare === undefined || bareWarm === undefined) throw new Error('the bare route was not measured')
const [alone, together] = [
  transfers.filter(({ callers }) => callers === 1),
  transfers.filter(({ callers }) => callers > 1),
]
const findFloor = ({ name }: { readonly name: string }) => (name.endsWith('warm') ? bareWarm : bare).rate
add(
  'Signed transfers a second (simulated chain; 64 connections, PGlite 16), to a bare Hono route with the same body; after 400 others, and warm after 2,400',
  together.map(({ name, rate, p50, p99, gatewayMs, databaseMs }) => ({
    what: `${name}; p50 ${p50} ms, p99 ${p99} ms; processor time ${gatewayMs.toFixed(1)} ms and the database's ${databaseMs.toFixed(1)} ms`,
    ours: perSecond(rate),
    floor: perSecond(findFloor({ name })),
    ratio: rate / findFloor({ name }),
  })),
)
add(
  'The same, to pgbench calling the spend function',
  together
    .filter(({ name }) => name.includes('PostgreSQL'))
    .map(({ name, rate }) => ({
      what: name,
      ours: perSecond(rate),
      floor: perSecond(pgbench),
      ratio: rate / pgbench,
    })),
)
add(
  'The same, one caller: median',
  alone.map(({ name, p50, p99 }) => ({
    what: `${name}; p99 ${p99} ms`,
    ours: `${p50} ms`,
    floor: '',
    ratio: null,
  })),
)

progress('round trips')
add(
  'Round trips to PostgreSQL of one transfer, one caller',
  (await benchRoundTrips(serverUrl)).map((line) => ({
    what: `${line.name}; ${line.statements} statements, ${line.transactions} transactions, ${(line.walBytes / 1024).toFixed(1)} KB WAL, ${line.walSyncs.toFixed(1)} syncs, p50 ${ms(line.p50)}`,
    ours: String(line.roundTrips),
    floor: '',
    ratio: null,
  })),
)

progress('confirmed transfers on the local chain')
add(
  'Confirmed transfers a second on the local chain, to its own rate for the same ERC-20 transfer (64 senders)',
  (await benchChain(serverUrl)).map(({ name, rate, floor }) => ({
    what: name,
    ours: perSecond(rate),
    floor: perSecond(floor),
    ratio: rate / floor,
  })),
)

progress('swaps')
add(
  'A swap from its quote to its confirmation on the local chain, median to that of a bare transfer (at most 1.5 times with blocks)',
  (await benchSwaps(serverUrl)).map(({ name, ours, floor }) => ({
    what: name,
    ours: ms(ours),
    floor: ms(floor),
    ratio: ours / floor,
  })),
)

await checkpoint()
progress('card decisions')
const cards = await benchCards(serverUrl)
const spendCall = cards.find(({ name }) => name.includes('spend'))
add(
  'Decisions on card purchases (open loop, 500 a second), p99 to that of the bare spend call',
  cards.map(({ name, p50, p99, rate }) => ({
    what: `${name}; p50 ${ms(p50)}, at most ${perSecond(rate)}`,
    ours: ms(p99),
    floor: ms(spendCall?.p99 ?? Number.NaN),
    ratio: p99 / (spendCall?.p99 ?? Number.NaN),
  })),
)

progress('x402')
const x402Rows = async (engine: string, databaseUrl: string | null): Promise<readonly Row[]> =>
  (await benchX402(databaseUrl)).map(({ name, stock, ours, unit }) => ({
    what: `${engine}, ${name}`,
    ours: unit === 'ms' ? ms(ours) : perSecond(ours),
    floor: unit === 'ms' ? ms(stock) : perSecond(stock),
    ratio: unit === 'ms' ? ours / stock : stock / ours,
  }))
const embedded = await x402Rows('PGlite', null)
const ledger = await createTestDatabase(serverUrl)
try {
  const durable = await x402Rows('PostgreSQL', ledger.url)
  add('x402, cost to the stock middlewares on the same chain', [...embedded, ...durable])
} finally {
  await ledger.drop()
}

progress('purchases')
const purchases = await createTestDatabase(serverUrl)
try {
  const measured = [
    ['PGlite', await benchPurchases(null)],
    ['PostgreSQL', await benchPurchases(purchases.url)],
  ] as const
  add(
    'Purchases from a stock x402 seller, to the stock client on the same seller and chain',
    measured.flatMap(([engine, { stock, ours }]) =>
      (['median', 'mean'] as const).map((figure) => ({
        what: `${engine}, a purchase, ${figure}`,
        ours: ms(ours[figure]),
        floor: ms(stock[figure]),
        ratio: ours[figure] / stock[figure],
      })),
    ),
  )
} finally {
  await purchases.drop()
}

progress('limits and policies')
const { memory, redis, incr } = await benchLimiter(process.env.TEST_REDIS_URL)
const { evaluationMicros, parseMicros } = benchPolicy()
add('Counting a request (16 callers), to a bare INCR; and a policy with every rule', [
  { what: 'in memory', ours: micros(memory), floor: '', ratio: null },
  ...(redis === null || incr === null
    ? []
    : [{ what: 'in Redis', ours: micros(redis), floor: micros(incr), ratio: redis / incr }]),
  {
    what: 'a spend judged by a policy with every rule',
    ours: micros(evaluationMicros),
    floor: '',
    ratio: null,
  },
  { what: 'such a policy parsed', ours: micros(parseMicros), floor: '', ratio: null },
])

progress('investing and swaps')
const investing = await benchInvesting(serverUrl)
add('Orders a second through the whole path (PostgreSQL, 16 people), to pgbench calling the spend function', [
  {
    what: 'orders, after 400 others',
    ours: perSecond(investing.orders),
    floor: perSecond(pgbench),
    ratio: investing.orders / pgbench,
  },
  {
    what: `orders, warm; processor time ${investing.gatewayMs.toFixed(1)} ms and the database's ${investing.databaseMs.toFixed(1)} ms`,
    ours: perSecond(investing.warm),
    floor: perSecond(pgbench),
    ratio: investing.warm / pgbench,
  },
  {
    what: 'a swap quote over its slowest aggregator',
    ours: ms(investing.quoteOverheadMs),
    floor: '',
    ratio: null,
  },
])

progress('events')
const events = await benchEvents(serverUrl)
add('Events: transfers a second with them, to those without (PostgreSQL, 64 callers)', [
  {
    what: 'signed transfers',
    ours: perSecond(events.on),
    floor: perSecond(events.off),
    ratio: events.on / events.off,
  },
  {
    what: `${events.heard} events at 200 a second to ${events.listeners} listeners; p50 ${ms(events.p50)}, p99`,
    ours: ms(events.p99),
    floor: '',
    ratio: null,
  },
])

progress('rest')
const rest = [await benchRest(serverUrl, 1), await benchRest(serverUrl, 1_000)]
add('The embedded sandbox at rest', [
  {
    what: 'resident memory, with the settings of its service and its image',
    ours: `${(await benchEmbedded()).toFixed(0)} MB`,
    floor: '',
    ratio: null,
  },
])
add(
  'A gateway at rest on PostgreSQL: statements a second',
  rest.map(({ wallets, firstStartMs, startMs, activePerSecond, statementsPerSecond, memoryMb }) => ({
    what: `${wallets} wallets; started in ${(startMs / 1_000).toFixed(1)} s (${(firstStartMs / 1_000).toFixed(1)} s on an empty database), holds ${memoryMb.toFixed(0)} MB; in the minute after the last write ${activePerSecond.toFixed(1)}/s`,
    ours: `${statementsPerSecond.toFixed(1)}/s`,
    floor: '',
    ratio: null,
  })),
)

progress('deposits')
add(
  'Finding a deposit (PostgreSQL, simulated chain), to that with the fewest wallets',
  (await benchDeposits(serverUrl)).map(({ wallets, p50, ratio }, _index, [first]) => ({
    what: `${wallets} wallets`,
    ours: ms(p50),
    floor: ms(first?.p50 ?? Number.NaN),
    ratio,
  })),
)

progress('scaling')
const scaling = await benchScaling(serverUrl, progress)
for (const [title, lines] of [
  ['A transfer through the whole gateway (PostgreSQL), median to that of the first line: keys', scaling.keys],
  ['The same: past transfers of the same account', scaling.transfers],
] as const)
  add(
    title,
    lines.map(({ name, p50, p99, ratio }) => ({
      what: `${name}; p99 ${ms(p99)}`,
      ours: ms(p50),
      floor: ms(lines[0]?.p50 ?? Number.NaN),
      ratio,
    })),
  )
const { before, after, requests } = scaling.memory
add('Memory, to that before', [
  { what: `after ${requests} requests`, ours: `${after} MB`, floor: `${before} MB`, ratio: after / before },
])

const table = renderReport(parts, await postgresVersion())
process.stdout.write(table)
writeFileSync(new URL('RESULTS.md', import.meta.url), table)
progress('written to test/bench/RESULTS.md')

async function postgresVersion(): Promise<string> {
  const [row] = z
    .tuple([z.object({ server_version: z.string() })])
    .parse(await runStatement('show server_version'))
  return row.server_version
}

/** Flushes the writes of earlier parts to disk before a latency is measured. */
async function checkpoint(): Promise<void> {
  await runStatement('checkpoint')
}

async function runStatement(statement: string): Promise<readonly unknown[]> {
  const client = new pg.Client({ connectionString: serverUrl })
  await client.connect()
  try {
    return (await client.query(statement)).rows
  } finally {
    await client.end()
  }
}

function renderReport(all: readonly Part[], postgres: string): string {
  const [cpu] = cpus()
  const machine = `${cpus().length} × ${cpu?.model.trim() ?? 'unknown processor'}, ${Math.round(totalmem() / 2 ** 30)} GB`
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
  const heading = [
    '# The last run of `npm run bench`',
    '',
    `${new Date().toISOString().slice(0, 10)}, commit ${commit}; ${machine}; Node ${process.versions.node}, PostgreSQL ${postgres}. Times depend on the machine; the ratios do not much.`,
    '',
    '| what | ours | floor or peer | ratio |',
    '|---|---|---|---|',
  ]
  const rows = all.flatMap(({ title, rows: lines }) => [
    `| **${title}** | | | |`,
    ...lines.map(
      ({ what, ours, floor, ratio }) =>
        `| ${what} | ${ours} | ${floor} | ${ratio === null ? '' : ratio.toFixed(ratio < 0.1 ? 3 : 2)} |`,
    ),
  ])
  return `${[...heading, ...rows].join('\n')}\n`
}
