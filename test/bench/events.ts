/**
 * The cost and the delay of events: signed transfers with the triggers of events on and off in turns, on one
 * gateway and database; and streams of a thousand accounts while 200 events a second happen.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { z } from 'zod'
import { createTestDatabase } from '../engines.ts'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { openTransfers } from './transfer.ts'

const ROUNDS = 5
const REQUESTS = 1_500
const LISTENERS = 1_000
const EVENTS_PER_SECOND = 200
const SECONDS = 20

export interface EventFigures {
  /** Transfers a second. Median over the rounds. */
  readonly on: number
  readonly off: number
  readonly listeners: number
  readonly heard: number
  /** Milliseconds from an event's time to its arrival. */
  readonly p50: number
  readonly p99: number
}

export async function benchEvents(serverUrl: string): Promise<EventFigures> {
  return { ...(await benchCost(serverUrl)), ...(await benchStreams(serverUrl)) }
}

async function benchCost(serverUrl: string): Promise<{ on: number; off: number }> {
  const { url, drop } = await createTestDatabase(serverUrl)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const transfers = await openTransfers({ DATABASE_URL: url })
  try {
    const { rows } = await client.query<{ statement: string }>(
      `select format('alter table %I %%s trigger %I', c.relname, t.tgname) as statement
       from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_proc p on p.oid = t.tgfoid
       where p.proname like 'event\\_of\\_%' and not t.tgisinternal`,
    )
    if (rows.length === 0) throw new Error('no trigger writes events')
    const rates = { on: [] as number[], off: [] as number[] }
    await transfers.run(REQUESTS)
    for (let round = 0; round < ROUNDS; round += 1)
      for (const state of round % 2 === 0 ? (['on', 'off'] as const) : (['off', 'on'] as const)) {
        for (const { statement } of rows)
          await client.query(statement.replace('%s', state === 'on' ? 'enable' : 'disable'))
        rates[state].push((await transfers.run(REQUESTS)).rate)
      }
    return { on: median(rates.on), off: median(rates.off) }
  } finally {
    await transfers.stop()
    await client.end()
    await drop()
  }
}

const guest = z.object({ sessionToken: z.string() })
const made = z.object({ key: z.string() })
const event = z.object({ type: z.string(), createdAt: z.string() })

async function benchStreams(serverUrl: string) {
  const { url, drop } = await createTestDatabase(serverUrl)
  const gateway = await startGateway({
    DATABASE_URL: url,
    CHAIN: 'simulated',
    RATE_GUESTS: '100000/60',
    RATE_MUTATIONS: '1000000/60',
  })
  const closing = new AbortController()
  try {
    const owners = await inTurns(LISTENERS, 16, () => newOwner(gateway))
    const delays: number[] = []
    let isMeasured = false
    await inTurns(LISTENERS, 32, async (at) => {
      const { body } = await fetch(`${gateway.origin}/api/events?type=decision.denied`, {
        headers: { accept: 'text/event-stream', authorization: `Bearer ${owners[at]?.token}` },
        signal: closing.signal,
      })
      if (body === null) throw new Error('a stream did not open')
      void hear(body, (createdAt) => isMeasured && delays.push(Date.now() - createdAt)).catch(() => undefined)
    })
    isMeasured = true
    const start = performance.now()
    const sent: Promise<void>[] = []
    for (let count = 0; count < EVENTS_PER_SECOND * SECONDS; count += 1) {
      const due = start + (count * 1_000) / EVENTS_PER_SECOND
      if (due > performance.now()) await pause(due - performance.now())
      sent.push(beDenied(gateway, owners[count % LISTENERS]?.key ?? ''))
    }
    await Promise.all(sent)
    await pause(2_000)
    const sorted = delays.sort((one, other) => one - other)
    const at = (part: number) => sorted[Math.floor(sorted.length * part)] ?? Number.NaN
    if (sorted.length !== sent.length) throw new Error(`${sorted.length} of ${sent.length} events were heard`)
    return { listeners: LISTENERS, heard: sorted.length, p50: at(0.5), p99: at(0.99) }
  } finally {
    closing.abort()
    await gateway.stop()
    await drop()
  }
}

async function newOwner({ origin }: Gateway): Promise<{ token: string; key: string }> {
  const post = async (path: string, body: unknown, token?: string) => {
    const response = await fetch(`${origin}${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(`${path} was answered ${response.status}: ${await response.text()}`)
    return response.json()
  }
  const { sessionToken: token } = guest.parse(await post('/api/auth/guest', {}))
  const policy = { perTransaction: { max: 1 }, dailyBudget: { max: 1 }, categories: { allow: ['transfer'] } }
  const wanted = { name: 'Bench', scopes: ['wallets:transfer'], policy }
  return { token, key: made.parse(await post('/api/developer/keys', wanted, token)).key }
}

/** Asks for more than the policy allows: the cheapest way to an event. */
async function beDenied({ origin }: Gateway, key: string): Promise<void> {
  const response = await fetch(`${origin}/api/wallets/transfer`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({
      destination: '0x000000000000000000000000000000000000dEaD',
      amount: '2',
      signature: 'sandbox',
    }),
  })
  const text = await response.text()
  if (response.status !== 403) throw new Error(`a denied call was answered ${response.status}: ${text}`)
}

async function hear(body: ReadableStream<Uint8Array>, onEvent: (createdAt: number) => void): Promise<void> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const part of body) {
    text += decoder.decode(part, { stream: true })
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const data = /^data: (.*)$/m.exec(block)?.[1]
      if (data !== undefined) onEvent(Date.parse(event.parse(JSON.parse(data)).createdAt))
    }
  }
}

async function inTurns<Made>(
  count: number,
  lanes: number,
  make: (at: number) => Promise<Made>,
): Promise<Made[]> {
  const all: Made[] = []
  let next = 0
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      for (let at = next++; at < count; at = next++) all[at] = await make(at)
    }),
  )
  return all
}

function median(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  process.stdout.write(`${JSON.stringify(await benchEvents(process.env.TEST_DATABASE_URL ?? ''))}\n`)
