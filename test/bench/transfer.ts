/**
 * A signed transfer through the whole gateway (signature, nonce, policy, reserve, ledger, settle; simulated chain) against a
 * bare Hono route that takes the same body. The load is autocannon's; every request was signed before the clock started.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { pathToFileURL } from 'node:url'
import { z } from 'zod'
import { createTestDatabase } from '../engines.ts'
import { newAgent } from '../journeys/agent.ts'
import { startGateway } from '../journeys/gateway.ts'
import { backendsMs, percentile, processorMs, shoot } from './load.ts'

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
    const origin = await readOrigin(child)
    const headers = { 'content-type': 'application/json' }
    const target = { origin, connections: CONNECTIONS }
    const all = Array.from({ length: REQUESTS }, () => headers)
    await load('warm up', target, all.slice(0, WARM_UP))
    return [await load('bare Hono route', target, all), await load('bare Hono route, warm', target, all)]
  } finally {
    child.kill()
  }
}

function readOrigin({ stdout }: ChildProcess): Promise<string> {
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
      const readUsage = () => [
        processorMs(gateway.process.pid),
        env.DATABASE_URL === undefined ? 0 : backendsMs(new URL(env.DATABASE_URL).pathname.slice(1)),
      ]
      const [gatewayBefore = 0, databaseBefore = 0] = readUsage()
      const line = await load('signed transfer', { origin, connections: callers }, signed)
      const [gatewayAfter = 0, databaseAfter = 0] = readUsage()
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

async function load(
  name: string,
  target: { readonly origin: string; readonly connections: number },
  headers: readonly Record<string, string>[],
): Promise<TransferLine> {
  const { times, seconds } = await shoot(name, target, headers.length, (next) => ({
    requests: [
      {
        setupRequest: (request) => {
          const mine = headers[next()] ?? {}
          return { ...request, method: 'POST', path: PATH, body, headers: { ...request.headers, ...mine } }
        },
      },
    ],
  }))
  return {
    name,
    callers: target.connections,
    rate: headers.length / seconds,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    gatewayMs: 0,
    databaseMs: 0,
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  for (const line of await benchTransfer(process.env.TEST_DATABASE_URL))
    process.stdout.write(
      `${line.name}, ${line.callers} callers: ${line.rate.toFixed(0)}/s, p50 ${line.p50} ms, p99 ${line.p99} ms; processor time ${line.gatewayMs.toFixed(2)} ms, of the database ${line.databaseMs.toFixed(2)} ms\n`,
    )
