/**
 * The official MCP conformance suite against the gateway: the required server scenarios of both eras, and the metadata
 * of the authorization server. `npm run conformance`; npm downloads the suite and the Node version that it needs, for
 * this run only. If TEST_DATABASE_URL names a server, two gateways use it, and requests of 2025 alternate between them.
 * @see https://github.com/modelcontextprotocol/conformance
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { freePort } from '../free-port.ts'
import { openProxy } from './front.ts'

const SUITE = '@modelcontextprotocol/conformance@0.2.0-alpha.12'
const NODE = 'node@24.9.0'
const REVISIONS = ['2025-11-25', '2026-07-28'] as const
const START_MS = 60_000

/** Longer than any run: the suite has its own limit for each scenario. */
const RUN_MS = 15 * 60_000

const isColoured = process.stdout.isTTY && process.env.NO_COLOR === undefined
const paint = (code: number, text: string) => (isColoured ? `\u001b[${code}m${text}\u001b[0m` : text)

const check = z.looseObject({ id: z.string(), status: z.string(), errorMessage: z.string().optional() })

interface Line {
  readonly scenario: string
  readonly isRequired: boolean
  readonly passed: number
  readonly messages: readonly z.output<typeof check>[]
}

async function main(): Promise<number> {
  const front = await openProxy()
  const shared = testServerUrl === undefined ? null : await createTestDatabase(testServerUrl)
  const store = shared === null ? { DATA_DIR: 'memory' } : { DATABASE_URL: shared.url }
  const gateways: Awaited<ReturnType<typeof startGateway>>[] = []
  const results = mkdtempSync(join(tmpdir(), 'conformance-'))
  try {
    for (let count = 0; count < (shared === null ? 1 : 2); count += 1)
      gateways.push(await startGateway(front.origin, store))
    const ports = gateways.map(({ port }) => port)
    const credentials = await (await fetch(`http://127.0.0.1:${ports[0]}/sandbox/credentials`)).json()
    const apiKey = z.looseObject({ demoApiKey: z.string() }).parse(credentials).demoApiKey
    let failed = 0
    for (const revision of REVISIONS) {
      const required = await readRequired(revision)
      const output = join(results, revision)
      // The fixture's 2026 notifications stay within one process; 2025 sessions work on every gateway.
      const behind = revision === '2025-11-25' ? ports : ports.slice(0, 1)
      front.serve({ ports: behind, apiKey })
      progress(`\nServer, ${revision}: ${required.size} required scenarios, gateways: ${behind.length}`)
      const code = await suite(
        ['server', '--url', `${front.origin}/mcp`, '--requirements', revision, '-o', output],
        progressLine,
      )
      failed += printTable(listLines(output, 'server-', required), { required, code })
    }
    progress('\nAuthorization server')
    const scenario = 'authorization-server-metadata-endpoint'
    const output = join(results, 'authorization')
    const url = `${front.origin}/oauth`
    const code = await suite(['authorization', '--url', url, '--scenario', scenario, '-o', output], () => {})
    const required = new Set([scenario])
    failed += printTable(listLines(output, 'authorization-server-', required), { required, code })
    progress(failed === 0 ? paint(32, '\nEvery required scenario passed.') : paint(31, `\n${failed} failed.`))
    return failed === 0 ? 0 : 1
  } finally {
    front.close()
    for (const gateway of gateways) await gateway.stop()
    await shared?.drop()
    rmSync(results, { recursive: true, force: true })
  }
}

/** A gateway as a child process, identified by the origin of its proxy. */
async function startGateway(origin: string, store: Readonly<Record<string, string>>) {
  const port = await freePort()
  const child = spawn(process.execPath, ['--import', 'tsx', 'test/conformance/gateway.ts'], {
    env: {
      PATH: process.env.PATH ?? '',
      NO_COLOR: '1',
      PORT: String(port),
      ...store,
      CHAIN: 'simulated',
      LOG_LEVEL: 'warn',
      PUBLIC_ORIGIN: origin,
      // The suite is a single client that sends requests as fast as possible.
      RATE_MUTATIONS: '100000/60',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGTERM')
    await exited
  }
  await awaitStart(child, exited).catch(async (error: unknown) => {
    await stop()
    throw error
  })
  return { port, stop }
}

function awaitStart(child: ChildProcess, exited: Promise<unknown>): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('The gateway did not start in time.')), START_MS)
    let output = ''
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text
      if (!output.includes('is up at')) return
      clearTimeout(timer)
      resolve()
    })
    void exited.then(() => {
      clearTimeout(timer)
      reject(new Error(`The gateway ended:\n${output}`))
    })
  })
}

/** Runs the suite. @returns its exit code. */
async function suite(args: readonly string[], onLine: (line: string) => void): Promise<number> {
  const packages = [`--package=${NODE}`, `--package=${SUITE}`]
  const child = spawn('npx', ['--yes', ...packages, '--', 'conformance', ...args], {
    env: { ...process.env, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: RUN_MS,
  })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  const exited = once(child, 'exit')
  for await (const line of createInterface({ input: child.stdout })) onLine(line)
  await exited
  if (child.exitCode === null) throw new Error(`The suite was ended by ${child.signalCode}.\n${errors}`)
  if (/npm error|Cannot find/i.test(errors)) throw new Error(`The suite cannot run:\n${errors.slice(-2_000)}`)
  return child.exitCode
}

/** The scenarios that a revision requires of a server, from the suite's own list. */
async function readRequired(revision: string): Promise<ReadonlySet<string>> {
  const lines: string[] = []
  await suite(['list', '--requirements', revision], (line) => lines.push(line))
  const start = lines.findIndex((line) => line.startsWith('Server scenarios'))
  const end = lines.findIndex((line, at) => at > start && line.trim() === '')
  const names = lines.slice(start + 1, end).map((line) => line.replace(/^\s*-\s*/, '').trim())
  if (start === -1 || names.length === 0) throw new Error(`The suite lists nothing for ${revision}.`)
  return new Set(names)
}

function listLines(directory: string, prefix: string, required: ReadonlySet<string>): Line[] {
  return readdirSync(directory).map((name) => {
    const text = readFileSync(join(directory, name, 'checks.json'), 'utf8')
    const checks = z.array(check).parse(JSON.parse(text))
    const scenario = name.slice(prefix.length).replace(/-\d{4}-\d{2}-\d{2}T.*$/, '')
    return {
      scenario,
      isRequired: required.has(scenario),
      passed: checks.filter(({ status }) => status === 'SUCCESS').length,
      messages: checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING'),
    }
  })
}

/**
 * Prints the table. @returns the number of required scenarios that failed or are missing; at least one if the suite
 * failed.
 */
function printTable(
  lines: readonly Line[],
  { required, code }: { required: ReadonlySet<string>; code: number },
): number {
  const isFailed = ({ messages: told }: Line) => told.some(({ status }) => status === 'FAILURE')
  for (const line of lines.filter(({ isRequired }) => isRequired)) {
    const mark = isFailed(line) ? paint(31, 'FAIL') : paint(32, 'pass')
    progress(`  ${mark}  ${line.scenario}, ${line.passed} checks passed`)
    for (const { id, status, errorMessage = '' } of line.messages)
      progress(`        ${status === 'FAILURE' ? 'failed' : 'warning'}: ${id}: ${errorMessage.slice(0, 300)}`)
  }
  const others = lines.filter(({ isRequired }) => !isRequired)
  if (others.length > 0) progress('  Optional scenarios of the suite (extensions and experimental ones):')
  for (const line of others)
    progress(`    ${isFailed(line) ? 'no  ' : 'pass'}  ${line.scenario}, ${line.passed} checks passed`)
  const missing = [...required].filter((name) => !lines.some(({ scenario }) => scenario === name))
  for (const name of missing) progress(`  ${paint(31, 'FAIL')}  ${name}: it did not run`)
  const failed = lines.filter((line) => line.isRequired && isFailed(line)).length + missing.length
  return code === 0 ? failed : Math.max(failed, 1)
}

/** Reports progress on standard error. */
function progressLine(line: string): void {
  const scenario = /^=== Running scenario: (\S+)/.exec(line)?.[1]
  if (scenario !== undefined) process.stderr.write(`  … ${scenario}\n`)
}

function progress(text: string): void {
  process.stdout.write(`${text}\n`)
}

process.exitCode = await main()
