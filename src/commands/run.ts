/**
 * `bursar run`: any program gets a key that can spend so much and no more, for so long, and an account of it at the end. The key is
 * revoked however the program ends or fails to start; should this process be killed, it ends by itself.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../core/base/clock.ts'
import { timers } from '../core/base/timers.ts'
import { rootCause } from '../core/failures/root-cause.ts'
import { toDecimal, toMoney } from '../core/money/money.ts'
import { minimum } from '../core/money/shares.ts'
import { type SigningKey, signRequest } from '../people/identity/keys/sign-request.ts'
import { newKey, readKeyFile, writeKeyFile } from './key-file.ts'
import { parseUrl } from './parse-url.ts'
import { findHome, openFolder } from './proxy/folder.ts'
import { type ProxyLimits, readLimits, readRoots } from './proxy/limits.ts'
import { buildVariables } from './proxy/variables.ts'

export interface RunOptions {
  readonly url?: string | undefined
  readonly key?: string | undefined
  readonly name?: string | undefined
  readonly budget?: string | undefined
  readonly for?: string | undefined
  readonly ca?: string | undefined
  readonly pass?: readonly string[] | undefined
  readonly 'max-price'?: string | undefined
  readonly 'no-proxy'?: boolean | undefined
  readonly 'allow-private'?: boolean | undefined
}

/** Exit codes of sysexits.h, where the command has none of its own. */
const EXIT = { usage: 64, unavailable: 69, refused: 77, notExecutable: 126, notFound: 127 }
/** Errors of a program that is not there, as shells judge them. */
const NOT_FOUND = ['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP']
const DEFAULT_FOR = '1h'
const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 }
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** Longest wait for an answer of the gateway. */
const TIMEOUT_MS = 30_000
/** Entries of the account that is printed. */
const MAX_ENTRIES = 100
const usage =
  'Usage: bursar run --key FILE --budget 2.00 [--for 30m] [--name NAME] [--max-price 0.10] [--no-proxy] [--url URL] -- COMMAND [ARGUMENT…]'

/** Ends the command before the program runs. */
class Refusal extends Error {
  readonly exitCode: number
  constructor(message: string, exitCode: number) {
    super(message)
    this.exitCode = exitCode
  }
}

type Json = Readonly<Record<string, unknown>>

/** @returns the exit code: the program's, or one of sysexits.h. */
export async function run(command: readonly string[], options: RunOptions): Promise<number> {
  try {
    return await runWithBudget(command, options)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    process.stderr.write(`bursar run: ${error.message}\n`)
    return error.exitCode
  }
}

async function runWithBudget([program, ...rest]: readonly string[], options: RunOptions): Promise<number> {
  if (program === undefined || program === '' || options.key === undefined || options.budget === undefined)
    throw new Refusal(usage, EXIT.usage)
  const name = (options.name ?? program).trim().slice(0, 80).trim()
  if (name === '') throw new Refusal(`--name: must be a name.\n${usage}`, EXIT.usage)
  const budget = parseBudget(options.budget)
  const seconds = parseSpan(options.for ?? DEFAULT_FOR)
  const origin = readOrigin(options.url)
  const proxied = readProxyOptions(options)
  const send = connect(origin, readKey(options.key))
  const own = await send('GET', '/api/agents/self')
  if (own.status !== 200) throw new Refusal(`The gateway refused the key: ${own.detail}`, EXIT.refused)
  const signals = holdSignals()
  const folder = mkdtempSync(join(tmpdir(), 'bursar-run-'))
  let proxy: OwnProxy | null = null
  try {
    const keyFile = join(folder, 'key.json')
    const key = newKey()
    writeKeyFile(keyFile, name, key)
    // Before the key can spend: a run without its proxy must leave no key.
    if (proxied !== null) proxy = await startOwnProxy({ ...proxied, folder, keyFile, origin })
    const expiresAt = new Date(systemClock().getTime() + seconds * 1_000).toISOString()
    const given = await send('POST', '/api/agents/delegations', {
      ...buildGrant(own.body, budget),
      name,
      publicKey: key.publicKey,
      expiresAt,
      earmark: true,
      task: toLabel(name),
    })
    if (given.status !== 200)
      throw new Refusal(`The gateway refused the budget: ${given.detail}`, EXIT.refused)
    const agentId = String(given.body.agentId)
    const code = await runProgram(
      [program, ...rest],
      { BURSAR_URL: origin, BURSAR_KEY_FILE: keyFile, ...proxy?.variables },
      signals,
    )
    const refusal = await revokeKey(send, agentId)
    const end = refusal === null ? 'is revoked' : `could not be revoked and ends at ${expiresAt}: ${refusal}`
    // The program's own code stands: a caller that saw another one would run, and pay, once more.
    const spends = await describeSpends(send, { agentId, budget }).catch(explainRefusal)
    process.stderr.write(`bursar run: ${spends}\nbursar run: the key ${end}\n`)
    return code
  } finally {
    await proxy?.close()
    rmSync(folder, { recursive: true, force: true })
    signals.release()
  }
}

interface ProxyOptions {
  readonly limits: ProxyLimits
  readonly roots: string
  readonly passed: readonly string[]
  readonly allowPrivate: boolean
}

/** @returns null where no proxy is wanted. @throws Refusal for what is no price or no file of certificates. */
function readProxyOptions(options: RunOptions): ProxyOptions | null {
  if (options['no-proxy'] === true) return null
  try {
    return {
      limits: readLimits(options),
      roots: readRoots(options.ca),
      passed: options.pass ?? [],
      allowPrivate: options['allow-private'] === true,
    }
  } catch (error) {
    throw new Refusal(error instanceof Error ? error.message : String(error), EXIT.usage)
  }
}

interface OwnProxy {
  readonly variables: Readonly<Record<string, string>>
  readonly close: () => Promise<void>
}

/**
 * A proxy for this run alone: its token and its open purchases end with it. The authority is that of `bursar proxy`.
 * @throws Refusal where none can be started.
 */
async function startOwnProxy(options: OwnProxyOptions): Promise<OwnProxy> {
  try {
    return await startProxyWith(options)
  } catch (error) {
    const reason = rootCause(error)
    throw new Refusal(`No proxy could be started (${reason}); --no-proxy does without.`, EXIT.unavailable)
  }
}

interface OwnProxyOptions extends ProxyOptions {
  readonly folder: string
  readonly keyFile: string
  readonly origin: string
}

async function startProxyWith({
  limits,
  roots,
  passed,
  allowPrivate,
  folder: own,
  keyFile,
  origin,
}: OwnProxyOptions): Promise<OwnProxy> {
  const { startProxy } = await import('./proxy/start-proxy.ts')
  const folder = openFolder(join(own, 'proxy'), { authorityFolder: findHome(), roots })
  const proxy = await startProxy({
    folder,
    port: 0,
    gateway: origin,
    key: readKeyFile(keyFile),
    ...limits,
    passed,
    allowPrivate,
    roots,
    // The account at the end has the purchases.
    report: () => undefined,
  })
  return {
    variables: buildVariables({ port: proxy.port, gateway: origin, folder }),
    close: proxy.close,
  }
}

/** @returns why the key could not be revoked; null if it is. */
async function revokeKey(send: Send, agentId: string): Promise<string | null> {
  try {
    const { status, detail } = await send('DELETE', `/api/agents/delegations/${agentId}`)
    // Its owner, or a key above, may have revoked it meanwhile.
    return status === 200 || status === 404 ? null : detail
  } catch (error) {
    return explainRefusal(error)
  }
}

function explainRefusal(error: unknown): string {
  if (error instanceof Refusal) return error.message
  throw error
}

function parseBudget(text: string): bigint {
  if (/^\d{1,12}(\.\d{1,2})?$/.test(text) && toCents(text) > 0n) return toCents(text)
  throw new Refusal(`--budget ${text}: must be an amount in USD, such as 2.00.\n${usage}`, EXIT.usage)
}

/** Policies count whole cents. */
function toCents(text: string): bigint {
  return toMoney('USD', text).units
}

function formatCents(cents: bigint): string {
  return toDecimal({ asset: 'USD', units: cents })
}

function parseSpan(text: string): number {
  const [, count = '', unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  const seconds = Number(count) * (SECONDS[unit] ?? 0)
  if (seconds > 0) return seconds
  throw new Refusal(`--for ${text}: must be a time such as 90s, 30m, 2h or 1d.\n${usage}`, EXIT.usage)
}

function readOrigin(url: string | undefined): string {
  try {
    return parseUrl(url ?? (process.env.BURSAR_URL || '/')).origin
  } catch (error) {
    throw new Refusal(error instanceof Error ? error.message : String(error), EXIT.usage)
  }
}

function readKey(file: string): SigningKey {
  try {
    return readKeyFile(file)
  } catch (error) {
    throw new Refusal(error instanceof Error ? error.message : String(error), EXIT.usage)
  }
}

type Send = (
  method: string,
  path: string,
  body?: Json,
) => Promise<{ readonly status: number; readonly body: Json; readonly detail: string }>

/** Sends signed requests. */
function connect(origin: string, key: SigningKey): Send {
  return async (method, target, given) => {
    const body = given === undefined ? null : Buffer.from(JSON.stringify(given))
    const signed = await signRequest(key, { origin, method, target, body, at: systemClock() })
    const response = await fetch(`${origin}${target}`, {
      method,
      headers: { ...signed, ...(body === null ? {} : { 'content-type': 'application/json' }) },
      body,
      signal: timers.deadline(TIMEOUT_MS),
    }).catch((error: unknown) => {
      throw new Refusal(`The gateway at ${origin} is unreachable: ${rootCause(error)}.`, EXIT.unavailable)
    })
    const answer = toRecord(await response.json().catch(() => ({})))
    const advice = typeof answer.hint === 'string' ? ` ${answer.hint}` : ''
    return {
      status: response.status,
      body: answer,
      detail: `${String(answer.detail ?? response.status)}${advice}`,
    }
  }
}

function toRecord(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}

function toList(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.map(toRecord) : []
}

/** What the key has, with no more than the budget. */
function buildGrant({ scopes, policy }: Json, budget: bigint): Json {
  const own = toRecord(policy)
  const least = (limit: unknown) => {
    const { max } = toRecord(limit)
    return typeof max === 'string' ? minimum(toCents(max), budget) : budget
  }
  const day = least(own.dailyBudget)
  const single = least(own.perTransaction)
  return {
    scopes,
    policy: {
      perTransaction: { max: formatCents(minimum(single, day)) },
      dailyBudget: { max: formatCents(day) },
      totalBudget: { max: formatCents(budget) },
      categories: own.categories,
    },
  }
}

/** The name as a label: printable ASCII. */
function toLabel(name: string): string {
  const label = name
    .replaceAll(/[^\x20-\x7e]/g, '-')
    .slice(0, 64)
    .trim()
  return label === '' ? 'run' : label
}

/** Signals to this process, which has a key to revoke: they end the program, or keep it from starting. */
interface HeldSignals {
  /** The first signal that came before there was a program. */
  readonly early: () => NodeJS.Signals | null
  readonly handTo: (program: ChildProcess) => void
  readonly release: () => void
}

function holdSignals(): HeldSignals {
  let early: NodeJS.Signals | null = null
  let program: ChildProcess | null = null
  const handOn = (signal: NodeJS.Signals) => {
    if (program === null) early ??= signal
    else program.kill(signal)
  }
  for (const signal of SIGNALS) process.on(signal, handOn)
  return {
    early: () => early,
    handTo: (started) => {
      program = started
    },
    release: () => {
      for (const signal of SIGNALS) process.off(signal, handOn)
    },
  }
}

/** Runs the program to its end. @returns its exit code, as a shell reports it. */
function runProgram(
  [program, ...rest]: readonly [string, ...string[]],
  given: Readonly<Record<string, string>>,
  signals: HeldSignals,
): Promise<number> {
  const early = signals.early()
  if (early !== null) return Promise.resolve(128 + constants.signals[early])
  // The session of an owner would let the program raise its own budget.
  const { BURSAR_SESSION: _, ...inherited } = process.env
  return new Promise<number>((resolve, reject) => {
    // Throws for some errors and reports others later.
    const child = spawn(program, rest, { stdio: 'inherit', env: { ...inherited, ...given } })
    signals.handTo(child)
    child.once('error', reject)
    child.once('exit', (code, signal) => {
      resolve(signal === null ? (code ?? 1) : 128 + constants.signals[signal])
    })
  }).catch((error: Error) => {
    const isMissing = 'code' in error && NOT_FOUND.includes(String(error.code))
    const reason = isMissing ? 'not found' : `not executable (${error.message})`
    process.stderr.write(`bursar run: ${program}: ${reason}\n`)
    return isMissing ? EXIT.notFound : EXIT.notExecutable
  })
}

/** The account of the run: what was spent, on what, and what came back. */
async function describeSpends(
  send: Send,
  { agentId, budget }: { agentId: string; budget: bigint },
): Promise<string> {
  const tree = await send('GET', `/api/agents/keys/${agentId}/tree`)
  const { total } = toRecord(tree.body.usage)
  const { used = '?', count = '?' } = toRecord(total)
  const ids = collectIds(tree.body)
  const lines: string[] = []
  for (const id of ids) {
    const { body } = await send('GET', `/api/activity?agentId=${id}&limit=${MAX_ENTRIES}`)
    for (const entry of toList(body.entries))
      if (entry.status !== 'denied')
        lines.push(
          `  ${String(entry.amount ?? '?').padStart(12)} ${String(entry.asset).padEnd(6)} ${String(entry.kind).padEnd(10)} ${plain(entry.counterparty)}`,
        )
  }
  const head = `spent ${String(used)} of ${formatCents(budget)} USD in ${String(count)} spends`
  return [head, ...lines].join('\n')
}

function collectIds(node: Json): readonly string[] {
  return [String(node.agentId), ...toList(node.children).flatMap(collectIds)]
}

/** Names of third parties, without what a terminal would obey. */
function plain(text: unknown): string {
  return typeof text === 'string' ? text.replaceAll(/[^\P{C}]/gu, '') : ''
}
