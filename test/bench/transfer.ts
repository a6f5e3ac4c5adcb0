/**
 * A signed transfer through the whole gateway (signature, nonce, policy, reserve, ledger, settle; simulated chain) against a
 * bare Hono route that takes the same body. The load is autocannon's; every request was signed before the clock started.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import autocannon from 'autocannon'
import { z } from 'zod'
import { createTestDatabase } from '../engines.ts'
import { newAgent } from '../journeys/agent.ts'
import { startGateway } from '../journeys/gateway.ts'

const REQUESTS = 2_000
const WARM_UP = 400
/** One caller alone, on the same gateway. */
const ALONE = 300
const CONNECTIONS = 64
/** The embedded database has a single session; more callers would only wait for it. */
const EMBEDDED_CONNECTIONS = 16
const PATH = '/api/wallets/transfer'
const body = JSON.stringify({
  destination: '0x000000000000000000000000000000000000dEaD',
  amount: '0.001',
  signature: 'sandbox',
})

/**
 * One measurement. @property rate requests a second. @property p50 milliseconds. @property gatewayMs and
 * @property databaseMs processor time of a request; 0 where there is no such process.
 */
export interface TransferLine {
  readonly name: string
  readonly callers: number
  readonly rate: number
  readonly p50: number
  readonly p99: number
  readonly gatewayMs: number
  readonly databaseMs: number
}

/**
 * Measures the floor and the gateway on each available engine. @param serverUrl a PostgreSQL server, if there is one.
 */
export async function benchTransfer(serverUrl: string | undefined): Promise<readonly TransferLine[]> {
  const lines = [...(await benchBare())]
  lines.push(...(await benchGateway('signed transfer, PGlite in memory', EMBEDDED_CONNECTIONS, {})))
  if (serverUrl === undefined) return lines
  const database = await createTestDatabase(serverUrl)
  try {
    lines.push(
      ...(await benchGateway('signed transfer, PostgreSQL', CONNECTIONS, { DATABASE_URL: database.url })),
    )
  } finally {
    await database.drop()
  }
  return lines
}

async function benchBare(): Promise<readonly TransferLine[]> {
  const child = spawn(process.execPath, ['--import', 'tsx', 'test/bench/bare-hono.ts'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const origin = await originOf(child)
    const headers = { 'content-type': 'application/json' }
    const target = { origin, connections: CONNECTIONS }
    const all = Array.from({ length: REQUESTS }, () => headers)
    await load('warm up', target, all.slice(0, WARM_UP))
    return [await load('bare Hono route', target, all), await load('bare Hono route, warm', target, all)]
  } finally {
    child.kill()
  }
}

function originOf({ stdout }: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    stdout?.setEncoding('utf8').on('data', (text: string) => {
      const origin = /is up at (\S+)/.exec(text)?.[1]
      if (origin !== undefined) resolve(origin)
    })
  })
}

async function benchGateway(
  name: string,
  connections: number,
  env: Record<string, string>,
): Promise<readonly TransferLine[]> {
  const { run, stop } = await openTransfers(env, connections)
  try {
    await run(WARM_UP)
    return [
      { ...(await run(REQUESTS)), name },
      // V8 compiles what a request runs during its first thousands.
      { ...(await run(REQUESTS)), name: `${name}, warm` },
      { ...(await run(ALONE, 1)), name },
    ]
  } finally {
    await stop()
  }
}

/** A gateway and an agent of it. `run` sends that many transfers, all signed before the clock starts. */
export async function openTransfers(
  env: Record<string, string>,
  connections = CONNECTIONS,
): Promise<{ run(count: number, callers?: number): Promise<TransferLine>; stop(): Promise<unknown> }> {
  const gateway = await startGateway({ ...env, CHAIN: 'simulated', RATE_MUTATIONS: '1000000/60' })
  const { origin } = gateway
  const agent = await newAgent()
  await register(origin, agent.jwk)
  return {
    run: async (count, callers = connections) => {
      const signed = []
      for (let made = 0; made < count; made += 1)
        signed.push(
          await agent.sign({ method: 'POST', url: `${origin}${PATH}`, body, idempotencyKey: randomUUID() }),
        )
      const used = () => [
        processorMs(gateway.process.pid),
        env.DATABASE_URL === undefined ? 0 : backendsMs(new URL(env.DATABASE_URL).pathname.slice(1)),
      ]
      const [gatewayBefore = 0, databaseBefore = 0] = used()
      const line = await load('signed transfer', { origin, connections: callers }, signed)
      const [gatewayAfter = 0, databaseAfter = 0] = used()
      return {
        ...line,
        gatewayMs: (gatewayAfter - gatewayBefore) / count,
        databaseMs: (databaseAfter - databaseBefore) / count,
      }
    },
    stop: () => gateway.stop(),
  }
}

async function register(origin: string, publicKey: object): Promise<void> {
  const post = (path: string, content: unknown, headers: Record<string, string> = {}) =>
    fetch(`${origin}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(content),
    })
  const { sessionToken } = z
    .object({ sessionToken: z.string() })
    .parse(await (await post('/api/auth/guest', {})).json())
  const policy = {
    perTransaction: { max: 1 },
    dailyBudget: { max: 1_000 },
    categories: { allow: ['transfer'] },
  }
  const registered = await post(
    '/api/agents/keys',
    { name: 'Bench', publicKey, scopes: ['wallets:transfer'], policy },
    { authorization: `Bearer ${sessionToken}` },
  )
  if (!registered.ok) throw new Error(`the bench could not register its agent: ${await registered.text()}`)
}

/** A server and the connections that send to it. */
interface Target {
  readonly origin: string
  readonly connections: number
}

async function load(
  name: string,
  target: Target,
  headers: readonly Record<string, string>[],
): Promise<TransferLine> {
  const signed = headers.map((mine) => ({ method: 'POST' as const, path: PATH, body, headers: mine }))
  const { result, times, seconds } = await shoot(target, signed)
  if (result['2xx'] !== signed.length)
    throw new Error(`${name}: ${signed.length - result['2xx']} of ${signed.length} requests failed`)
  return {
    name,
    callers: target.connections,
    rate: signed.length / seconds,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    gatewayMs: 0,
    databaseMs: 0,
  }
}

/** Processor time of a process since its start, in milliseconds; Linux counts it in hundredths of a second. */
function processorMs(pid: number | string | undefined): number {
  const [, fields = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')
  const [user = '0', system = '0'] = fields.split(' ').slice(11, 13)
  return (Number(user) + Number(system)) * 10
}

/** Processor time of the PostgreSQL sessions on a database. */
function backendsMs(database: string): number {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .reduce((sum, pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        return /^postgres: /.test(command) && command.includes(` ${database} `) ? sum + processorMs(pid) : sum
      } catch {
        // It has ended meanwhile.
        return sum
      }
    }, 0)
}

/** Milliseconds with a tenth: autocannon's own percentiles are whole. */
function percentile(times: readonly number[], share: number): number {
  const sorted = times.toSorted((left, right) => left - right)
  return Math.round((sorted[Math.floor(sorted.length * share)] ?? Number.NaN) * 10) / 10
}

/** Sends each request once. The time runs to the last answer: autocannon's own ends with its sampling interval. */
async function shoot({ origin, connections }: Target, requests: readonly autocannon.Request[]) {
  let next = 0
  const setupRequest = (request: autocannon.Request) => {
    const mine = requests[next] ?? {}
    next += 1
    return { ...request, ...mine, headers: { ...request.headers, ...mine.headers } }
  }
  const options = {
    url: origin,
    connections,
    amount: requests.length,
    requests: [{ setupRequest }],
  }
  const start = performance.now()
  let end = start
  const times: number[] = []
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const run = autocannon(options, (error, done) => (error === null ? resolve(done) : reject(error)))
    run.on('response', (_client, _status, _bytes, time) => {
      end = performance.now()
      times.push(time)
    })
  })
  return { result, times, seconds: (end - start) / 1_000 }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  for (const line of await benchTransfer(process.env.TEST_DATABASE_URL))
    process.stdout.write(
      `${line.name}, ${line.callers} callers: ${line.rate.toFixed(0)}/s, p50 ${line.p50} ms, p99 ${line.p99} ms; processor time ${line.gatewayMs.toFixed(2)} ms, of the database ${line.databaseMs.toFixed(2)} ms\n`,
    )
