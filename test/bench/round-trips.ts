/**
 * Database cost of one transfer: round trips, statements and transactions as a proxy in front of PostgreSQL sees them
 * between request and response, and the write-ahead log over all of them. One caller, simulated chain. The log is that of the
 * whole server: measure on one that does nothing else. `npx tsx test/bench/round-trips.ts [names | wal]`, about a minute,
 * because PostgreSQL reports its log late.
 */
import { randomUUID } from 'node:crypto'
import { connect, createServer, type Socket } from 'node:net'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { z } from 'zod'
import { createTestDatabase } from '../engines.ts'
import { type Agent, newAgent } from '../journeys/agent.ts'
import { startGateway } from '../journeys/gateway.ts'
import { newGuest, type Person } from '../journeys/people.ts'
import { openWal, readWalByRelation, readWalPosition, type WalLine, walText } from './wal.ts'

const WARM_UP = 20
const TRANSFERS = 100
const policy = {
  perTransaction: { max: 1 },
  dailyBudget: { max: 1_000 },
  categories: { allow: ['transfer'] },
}
const payment = { destination: '0x000000000000000000000000000000000000dEaD', amount: '0.001' }

/** Medians of one transfer. @property walBytes and @property walSyncs are means over all transfers. */
export interface RoundTripLine {
  readonly name: string
  readonly roundTrips: number
  readonly statements: number
  readonly transactions: number
  readonly p50: number
  readonly walBytes: number
  readonly walSyncs: number
  /** Names of the statements of the last transfer, in order. */
  readonly names: readonly string[]
  /** The log by relation; empty without a reader. */
  readonly wal: readonly WalLine[]
}

/** Begins to read the log. The returned function reads what was written since it was last called. */
type OpenLog = (admin: pg.Client) => Promise<() => Promise<readonly WalLine[]>>

const readNothing: OpenLog = async () => async () => []

/** Needs `pg_walinspect`. */
const readLogs: OpenLog = async (admin) => {
  await openWal(admin)
  let from = await readWalPosition(admin)
  return async () => {
    const to = await readWalPosition(admin)
    const found = await readWalByRelation(admin, from, to)
    from = to
    return found
  }
}

/** Measures a transfer of each kind of caller. @param serverUrl a PostgreSQL server. */
export async function benchRoundTrips(
  serverUrl: string,
  openLog: OpenLog = readNothing,
): Promise<readonly RoundTripLine[]> {
  const { url, drop } = await createTestDatabase(serverUrl)
  const proxy = await startProxy(new URL(url))
  const gateway = await startGateway({
    DATABASE_URL: proxy.url,
    CHAIN: 'simulated',
    RATE_MUTATIONS: '1000000/60',
  })
  const admin = new pg.Client({ connectionString: url })
  try {
    await admin.connect()
    const prepared: [string, Prepare][] = []
    for (const [name, prepare] of Object.entries(callers))
      prepared.push([name, await prepare(gateway.origin)])
    for (const [, prepare] of prepared)
      for (let count = 0; count < WARM_UP; count += 1) await sendOne(await prepare())
    const lines: RoundTripLine[] = []
    const readLog = await openLog(admin)
    let wal = await readWal(admin)
    await readLog()
    for (const [name, prepare] of prepared) {
      const seen = await measure(prepare, proxy.tally)
      const names = [...proxy.tally.names]
      const walNow = await readWal(admin)
      const walBytes = (walNow.bytes - wal.bytes) / TRANSFERS
      const walSyncs = (walNow.syncs - wal.syncs) / TRANSFERS
      lines.push({ name, ...seen, names, walBytes, walSyncs, wal: await readLog() })
      wal = walNow
    }
    return lines
  } finally {
    await admin.end()
    await gateway.stop()
    await proxy.close()
    await drop()
  }
}

/** Prepares a transfer, which is sent when the returned function is called. */
type Prepare = () => Promise<() => Promise<Response>>

const callers: Readonly<Record<string, (origin: string) => Promise<Prepare>>> = {
  'API key': async (origin) => {
    const person = await newGuest(origin)
    const { body } = await person.send('POST', '/api/developer/keys', {
      name: 'Bench',
      scopes: ['wallets:transfer'],
      policy,
    })
    const authorization = `Bearer ${z.string().parse(body.key)}`
    return async () => () => post(origin, { authorization, 'idempotency-key': randomUUID() })
  },
  'signed request (RFC 9421)': async (origin) => {
    const agent = await newAgent()
    await register(await newGuest(origin), agent)
    return async () => sign(origin, agent, 'sandbox')
  },
  'signed request with a signed intent': async (origin) => {
    const agent = await newAgent()
    await register(await newGuest(origin), agent)
    return async () => {
      const url = `${origin}/api/wallets/transfer/intent`
      const answer = await agent.fetch({ method: 'POST', url, body: JSON.stringify(payment) })
      const { hash } = z.looseObject({ hash: z.string() }).parse(await answer.json())
      return sign(origin, agent, agent.signHash(hash))
    }
  },
}

async function sign(origin: string, agent: Agent, signature: string): Promise<() => Promise<Response>> {
  const url = `${origin}/api/wallets/transfer`
  const body = JSON.stringify({ ...payment, signature })
  const headers = await agent.sign({ method: 'POST', url, body, idempotencyKey: randomUUID() })
  return () => post(origin, headers, body)
}

async function register(person: Person, agent: Agent): Promise<void> {
  const { status, body } = await person.send('POST', '/api/agents/keys', {
    name: 'Bench',
    publicKey: agent.jwk,
    scopes: ['wallets:transfer'],
    policy,
  })
  if (status >= 300) throw new Error(`the bench could not register its agent: ${JSON.stringify(body)}`)
}

function post(
  origin: string,
  headers: Record<string, string>,
  body = JSON.stringify({ ...payment, signature: 'sandbox' }),
): Promise<Response> {
  return fetch(`${origin}/api/wallets/transfer`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  })
}

/** Sends a transfer and returns its milliseconds. */
async function sendOne(send: () => Promise<Response>): Promise<number> {
  const start = performance.now()
  const response = await send()
  const text = await response.text()
  if (!response.ok) throw new Error(`the bench expected a transfer and got ${response.status} ${text}`)
  return performance.now() - start
}

async function measure(
  prepare: Prepare,
  tally: Tally,
): Promise<Pick<RoundTripLine, 'roundTrips' | 'statements' | 'transactions' | 'p50'>> {
  const seen: { roundTrips: number; statements: number; transactions: number; ms: number }[] = []
  for (let count = 0; count < TRANSFERS; count += 1) {
    const send = await prepare()
    tally.reset()
    const ms = await sendOne(send)
    const { roundTrips, transactions, names } = tally
    seen.push({ roundTrips, statements: names.length, transactions, ms })
  }
  const findMedian = (member: keyof (typeof seen)[number]) => median(seen.map((one) => one[member]))
  return {
    roundTrips: findMedian('roundTrips'),
    statements: findMedian('statements'),
    transactions: findMedian('transactions'),
    p50: findMedian('ms'),
  }
}

const walRow = z.object({ bytes: z.coerce.number(), syncs: z.coerce.number() })

/** The server's write-ahead log. Backends report their counts when they have been idle for ten seconds. */
async function readWal(admin: pg.Client): Promise<z.output<typeof walRow>> {
  await new Promise((resolve) => setTimeout(resolve, 11_000))
  const { rows } = await admin.query('select wal_bytes as bytes, wal_sync as syncs from pg_stat_wal')
  return walRow.parse(rows[0])
}

function median(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}

/** Traffic over all connections since the last reset. */
interface Tally {
  roundTrips: number
  transactions: number
  names: string[]
  reset(): void
}

const QUERY = 0x51
const PARSE = 0x50
const BIND = 0x42
const SYNC = 0x53
const READY = 0x5a
const IDLE = 0x49

/** Forwards to a server and reads the messages. @see https://www.postgresql.org/docs/15/protocol-message-formats.html */
export async function startProxy(
  target: URL,
): Promise<{ url: string; tally: Tally; close: () => Promise<void> }> {
  const tally: Tally = {
    roundTrips: 0,
    transactions: 0,
    names: [],
    reset: () => Object.assign(tally, { roundTrips: 0, transactions: 0, names: [] }),
  }
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(Number(target.port || 5432), target.hostname)
    const texts = new Map<string, string>()
    const fromClient = readMessages(true, (type, body) => {
      if (type === PARSE) {
        const [name = '', text = ''] = stringsIn(body)
        texts.set(name, name === '' ? text.replaceAll(/\s+/g, ' ').slice(0, 100) : name)
      }
      if (type === BIND) tally.names.push(texts.get(stringsIn(body)[1] ?? '') ?? '?')
      if (type === QUERY) tally.names.push(stringsIn(body)[0] ?? '?')
      if (type === QUERY || type === SYNC) tally.roundTrips += 1
    })
    const fromServer = readMessages(false, (type, body) => {
      if (type === READY && body[0] === IDLE) tally.transactions += 1
    })
    client.on('data', fromClient).pipe(upstream)
    upstream.on('data', fromServer).pipe(client)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => socket.destroy())
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port')
  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String(address.port)
  return {
    url: url.href,
    tally,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Splits a stream into messages. @param hasStartup the first message has no type. */
function readMessages(hasStartup: boolean, onMessage: (type: number, body: Buffer) => void) {
  let rest: Buffer = Buffer.alloc(0)
  let isFirst = hasStartup
  return (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    for (;;) {
      const head = isFirst ? 0 : 1
      if (rest.length < head + 4) return
      const end = head + rest.readUInt32BE(head)
      if (rest.length < end) return
      if (!isFirst) onMessage(rest.readUInt8(0), rest.subarray(head + 4, end))
      isFirst = false
      rest = rest.subarray(end)
    }
  }
}

function stringsIn(body: Buffer): readonly string[] {
  const first = body.indexOf(0)
  const second = body.indexOf(0, first + 1)
  return [body.toString('utf8', 0, first), second === -1 ? '' : body.toString('utf8', first + 1, second)]
}

export function roundTripText({ name, ...line }: RoundTripLine): string {
  const { roundTrips, statements, transactions, p50, walBytes, walSyncs } = line
  return `${name}: ${roundTrips} round trips, ${statements} statements, ${transactions} transactions; p50 ${p50.toFixed(1)} ms; ${(walBytes / 1024).toFixed(1)} KB WAL, ${walSyncs.toFixed(1)} syncs`
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [, , detail] = process.argv
  for (const line of await benchRoundTrips(
    process.env.TEST_DATABASE_URL ?? 'postgres://postgres@127.0.0.1:5432/postgres',
    detail === 'wal' ? readLogs : undefined,
  )) {
    const names = detail === 'names' ? line.names.map((text) => `  ${text}`) : []
    const log = detail === 'wal' ? [walText(line.wal, TRANSFERS)] : []
    process.stdout.write(`${[roundTripText(line), ...names, ...log].join('\n')}\n`)
  }
}
