/** The anvil binary: locates it, and runs it as a process that cannot outlive this one. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import { timers } from '../../core/base/timers.ts'
import { type ChainName, chains } from '../../core/money/chains.ts'

const require = createRequire(import.meta.url)

/** A running anvil. `exited` settles when it ends, for any reason. */
export interface AnvilProcess {
  readonly pid: number | undefined
  readonly url: string
  readonly port: number
  readonly exited: Promise<void>
  stop(): Promise<void>
}

/**
 * Finds the path of the binary: the given one, or that of the platform's optional dependency.
 * @throws Error with instructions when there is none.
 */
export function findAnvil(given: string | null | undefined): string {
  if (given) return given
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch
  const file = process.platform === 'win32' ? 'anvil.exe' : 'anvil'
  try {
    return require.resolve(`@foundry-rs/anvil-${process.platform}-${architecture}/bin/${file}`)
  } catch (cause) {
    throw new Error(
      `No anvil binary for ${process.platform}-${process.arch} is installed. Set ANVIL_BIN to its path,  ` +
        'set CHAIN_RPC_URL to a running node, or set CHAIN=simulated for a chain in memory.',
      { cause },
    )
  }
}

/**
 * The shell waits for its standard input to close, and then kills the process it started. The pipe closes with this
 * process even after a forced kill. A separate process group keeps Ctrl-C in the terminal from ending the chain
 * before the gateway has drained, and lets the waiting shell end together with anvil.
 */
const dieWithParent =
  'exec 3<&0; (cat <&3 >/dev/null; kill -9 $$) >/dev/null 2>&1 & exec 3<&-; exec "$@" </dev/null'

/**
 * History is pruned, because it grew to many gigabytes under load. A few states are kept, so that a read during a new
 * block still finds its own, and enough blocks of transactions for recent transfers. The block gas limit lets a burst
 * fit into one block. Requests from browser pages are rejected.
 */
const limits = [
  '--no-cors',
  '--prune-history',
  '64',
  '--transaction-block-keeper',
  '10000',
  '--gas-limit',
  '3000000000',
]

/**
 * Environment variables the process needs. The rest of our environment holds secrets, and other users may read a
 * child's environment.
 */
const NEEDED = ['PATH', 'HOME', 'TMPDIR', 'TEMP', 'TMP', 'SystemRoot', 'USERPROFILE']

function pickNeeded(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(NEEDED.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))
}

/**
 * Starts anvil with the id of a chain.
 * @param port 0 for any free port. @param more further flags.
 * @throws Error when it exits, or does not listen within `timeoutMs`.
 */
export async function spawnAnvil(
  binary: string,
  port: number,
  timeoutMs: number,
  chain: ChainName = 'base-sepolia',
  more: readonly string[] = [],
): Promise<AnvilProcess> {
  const flags = ['--port', `${port}`, '--chain-id', `${chains[chain].id}`, ...limits, ...more]
  const isWindows = process.platform === 'win32'
  const env = pickNeeded(process.env)
  const child = isWindows
    ? spawn(binary, flags, { stdio: ['ignore', 'pipe', 'pipe'], env })
    : spawn('sh', ['-c', dieWithParent, 'sh', binary, ...flags], {
        stdio: ['pipe', 'pipe', 'pipe'],
        env,
        detached: true,
      })
  const end = () => endGroup(child, isWindows)
  const exited = new Promise<void>((resolve) => {
    child.once('exit', resolve)
    child.once('error', () => resolve())
  }).finally(() => {
    process.off('exit', end)
    end()
  })
  process.once('exit', end)
  try {
    const listening = await listeningPort(child, timeoutMs)
    return {
      pid: child.pid,
      url: `http://127.0.0.1:${listening}`,
      port: listening,
      exited,
      async stop() {
        end()
        await exited
      },
    }
  } catch (error) {
    end()
    throw error
  }
}

function endGroup(child: ChildProcess, isWindows: boolean): void {
  child.stdin?.destroy()
  if (child.pid === undefined) return
  try {
    if (isWindows) child.kill('SIGKILL')
    // The group's number cannot be reused while the waiting shell is in the group.
    else process.kill(-child.pid, 'SIGKILL')
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

function listeningPort(child: ChildProcess, timeoutMs: number): Promise<number> {
  return new Promise((resolve, reject) => {
    let complaint = ''
    const cancel = timers.after(timeoutMs, () => fail(`it did not listen within ${timeoutMs} ms`))
    const fail = (why: string) => {
      cancel()
      reject(new Error(`anvil did not start: ${why} ${complaint}`.trim()))
    }
    child.once('error', (error) => fail(error.message))
    child.once('exit', (code, signal) => fail(`it exited with ${signal ?? code}.`))
    child.stderr?.on('data', (chunk) => {
      complaint = (complaint + String(chunk)).slice(-400)
    })
    if (child.stdout === null) return fail('it has no output')
    // The output is read until the end, because an unread pipe would block the process.
    createInterface(child.stdout).on('line', (line) => {
      const port = /^Listening on .*:(\d+)$/.exec(line)?.[1]
      if (port === undefined) return
      cancel()
      resolve(Number(port))
    })
  })
}
