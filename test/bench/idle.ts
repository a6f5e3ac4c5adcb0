/**
 * Database cost of a gateway without calls: transactions a second, as a proxy in front of PostgreSQL sees them end, in the
 * minute after some activity and in the one after that. Simulated chain; 64 wallets, each with a transfer, and a schedule
 * that is due in a year. The wallets are made a minute earlier: the sandbox pays each of them dividends.
 * `npx tsx test/bench/idle.ts [names]` also lists the statements of both minutes; about four minutes.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { createTestDatabase } from '../engines.ts'
import { startGateway } from '../journeys/gateway.ts'
import { newGuest } from '../journeys/people.ts'
import { startProxy } from './round-trips.ts'

const WALLETS = 64
const WINDOW_MS = 60_000
const YEAR_MS = 365 * 24 * 60 * 60_000
const transfer = { destination: '0x000000000000000000000000000000000000dEaD', amount: '0.001' }

/** @property statements runs of each statement by its name, in a minute; most frequent first. */
export interface IdleLine {
  readonly name: string
  readonly transactionsPerSecond: number
  readonly statements: readonly (readonly [name: string, runs: number])[]
}

/** Measures both minutes. @param serverUrl a PostgreSQL server. */
export async function benchIdle(serverUrl: string): Promise<readonly IdleLine[]> {
  const { url, drop } = await createTestDatabase(serverUrl)
  const proxy = await startProxy(new URL(url))
  const gateway = await startGateway({
    DATABASE_URL: proxy.url,
    CHAIN: 'simulated',
    RATE_MUTATIONS: '1000000/60',
    RATE_GUESTS: '1000000/60',
  })
  try {
    await makeActivity(gateway.origin)
    const lines: IdleLine[] = []
    for (const name of ['the minute after activity', 'the minute after that']) {
      proxy.tally.reset()
      await pause(WINDOW_MS)
      const statements = countEach(proxy.tally.names)
      lines.push({ name, transactionsPerSecond: (proxy.tally.transactions * 1_000) / WINDOW_MS, statements })
    }
    return lines
  } finally {
    await gateway.stop()
    await proxy.close()
    await drop()
  }
}

async function makeActivity(origin: string): Promise<void> {
  const people = await Promise.all(Array.from({ length: WALLETS }, () => newGuest(origin)))
  const send = async (person: (typeof people)[number], path: string, body: unknown) => {
    const answer = await person.send('POST', path, body, { 'idempotency-key': randomUUID() })
    if (answer.status >= 300)
      throw new Error(`the bench got ${answer.status} for ${path}: ${JSON.stringify(answer.body)}`)
  }
  await pause(WINDOW_MS)
  const [first] = people
  if (first !== undefined) {
    const startsAt = new Date(Date.now() + YEAR_MS).toISOString()
    await send(first, '/api/schedules', {
      operation: 'wallets.transfer',
      input: transfer,
      every: { unit: 'day' },
      startsAt,
    })
  }
  for (const person of people)
    await send(person, '/api/wallets/transfer', { ...transfer, signature: 'sandbox' })
}

function countEach(names: readonly string[]): IdleLine['statements'] {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].sort(([, one], [, other]) => other - one)
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  for (const { name, transactionsPerSecond, statements } of await benchIdle(
    process.env.TEST_DATABASE_URL ?? 'postgres://postgres@127.0.0.1:5432/postgres',
  )) {
    process.stdout.write(`${name}: ${transactionsPerSecond.toFixed(1)} transactions a second\n`)
    if (process.argv[2] === 'names')
      for (const [statement, runs] of statements) process.stdout.write(`  ${runs} ${statement}\n`)
  }
