/** `bursar proxy`: programs without a wallet buy what answers 402. `bursar proxy env` prints how they use it. */
import { readKeyFile, readKeyGateway } from '../key-file.ts'
import { parseUrl } from '../parse-url.ts'
import { findHome, openFolder, readLastStart, writeLastStart } from './folder.ts'
import { readLimits, readRoots } from './limits.ts'
import { startProxy } from './start-proxy.ts'
import { buildVariables, writeExports } from './variables.ts'

export interface ProxyValues {
  readonly url?: string | undefined
  readonly key?: string | undefined
  readonly port?: string | undefined
  readonly ca?: string | undefined
  readonly budget?: string | undefined
  readonly pass?: readonly string[] | undefined
  readonly 'max-price'?: string | undefined
  readonly 'allow-private'?: boolean | undefined
}

type Env = Readonly<Record<string, string | undefined>>

const usage =
  'Usage: bursar proxy --key FILE [--port 8402] [--max-price 0.10] [--budget 1.00], or bursar proxy env'

/** @returns the exit code once it is interrupted. @throws Error with a user-facing message. */
export async function proxy(
  [action, ...rest]: readonly string[],
  values: ProxyValues,
  env: Env,
): Promise<number> {
  if (rest.length > 0 || (action !== undefined && action !== 'env')) throw new Error(usage)
  return action === 'env' ? printVariables(values, env) : serve(values, env)
}

function printVariables(values: ProxyValues, env: Env): number {
  const last = readLastStart(findHome())
  const folder = openFolder(findHome(), { roots: readRoots(values.ca) })
  const port = values.port === undefined ? last.port : parsePort(values.port)
  const gateway =
    values.url === undefined && last.gateway !== null ? last.gateway : chooseGateway(values, env)
  process.stdout.write(writeExports(buildVariables({ port, gateway, folder })))
  return 0
}

async function serve(values: ProxyValues, env: Env): Promise<number> {
  if (values.key === undefined) throw new Error(`--key is missing. ${usage}`)
  const { maxMicros, budgetMicros } = readLimits(values)
  const key = readKeyFile(values.key)
  const gateway = chooseGateway(values, env)
  const home = findHome()
  const last = readLastStart(home)
  const roots = readRoots(values.ca)
  const folder = openFolder(home, { roots })
  const port = values.port === undefined ? last.port : parsePort(values.port)
  const running = await startProxy({
    folder,
    port,
    gateway,
    key,
    maxMicros,
    budgetMicros,
    roots,
    passed: values.pass ?? [],
    allowPrivate: values['allow-private'] === true,
    report: tell,
  })
  writeLastStart(home, { port: running.port, gateway })
  tell(`Proxy on 127.0.0.1:${running.port}, paying through ${gateway}. Ctrl-C ends it.`)
  tell(`Spent with this key: ${formatUsd(running.spentMicros())} of ${formatUsd(budgetMicros)} USD.`)
  tell('Programs use it in a shell with: eval "$(bursar proxy env)"')
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve())
  })
  await running.close()
  return 0
}

function parsePort(text: string): number {
  const port = Number(text)
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port
  throw new Error(`--port ${text}: must be a port, such as 8402.`)
}

/** `--url`, BURSAR_URL, the gateway of the key, or the local sandbox. */
function chooseGateway({ url, key }: ProxyValues, env: Env): string {
  const named = url ?? (env.BURSAR_URL || undefined)
  const known = key === undefined ? null : readKeyGateway(key)
  return parseUrl(named ?? known ?? '/').origin
}

/** At least cents. */
function formatUsd(micros: bigint): string {
  const digits = micros.toString().padStart(7, '0')
  return `${digits.slice(0, -6)}.${digits.slice(-6).replace(/0{1,4}$/, '')}`
}

function tell(line: string): void {
  process.stderr.write(`${line.replaceAll(/[^\x20-\x7e]/g, '?')}\n`)
}
