/** Runs the built gateway as a child process, with the environment of a new installation. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { inject } from 'vitest'
import { testServerUrl } from '../engines.ts'
import { isBalanceable, startBalanced } from './balanced.ts'

const MAIN = '.build/bin/main.js'
/** For starts that hang: the first one after a build takes half a minute on a machine that is busy with others. */
const START_MS = 60_000

export interface Gateway {
  readonly origin: string
  /** Origin of the process itself; differs from `origin` only behind a balancer. */
  readonly local: string
  readonly process: ChildProcess
  /** Output so far. */
  readonly output: () => string
  /** Sends SIGTERM and waits. @returns the exit code. */
  stop(): Promise<number | null>
}

/** Settings of a gateway that serves many tests: limits of a client address are raised, because tests share theirs. */
export const forManyTests: Readonly<Record<string, string>> = Object.fromEntries(
  [
    'AUTHORIZATIONS',
    'DEVICES',
    'FEEDBACK',
    'FX',
    'GASLESS',
    'GUESTS',
    'MESSAGES',
    'MUTATIONS',
    'OTP_COUNTRY',
    'OTP_DESTINATION',
    'OTP_IP',
    'OTP_RESEND',
    'OTP_TOTAL',
    'RAILS',
    'RECOVERY',
    'REGISTRATIONS',
    'REVEALS',
    'STOPS',
  ].map((name) => [`RATE_${name}`, '1000000/60']),
)

/**
 * Starts a gateway on a free port. @param env added to a clean sandbox environment. TEST_GATEWAYS starts that many
 * behind a balancer, unless `env` sets a shared setting.
 */
export async function startGateway(env: Readonly<Record<string, string>> = {}): Promise<Gateway> {
  const count = Number(process.env.TEST_GATEWAYS ?? 1)
  if (count === 1 || testServerUrl === undefined || !isBalanceable(env)) return startProcess(env)
  const servers = { count, serverUrl: testServerUrl, redisUrl: process.env.TEST_REDIS_URL }
  return startBalanced(servers, env, startProcess)
}

/**
 * Origin of this worker's gateway, which all its files use and none stops, floods, kills or configures. Its demo account
 * belongs to everybody: a test that spends opens a guest or a person of its own.
 */
export function sharedGateway(): string {
  const origins = inject('gateways')
  const origin = origins[Number(process.env.VITEST_POOL_ID) % origins.length]
  if (origin === undefined) throw new Error('This suite has no shared gateways.')
  return origin
}

async function startProcess(env: Readonly<Record<string, string>>): Promise<Gateway> {
  if (!existsSync(MAIN)) throw new Error('Build first: npm run build')
  const child = spawn(process.execPath, [MAIN, 'serve'], {
    env: {
      PATH: process.env.PATH ?? '',
      NO_COLOR: '1',
      PORT: '0',
      DATA_DIR: 'memory',
      LOG_LEVEL: 'warn',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  const exited = once(child, 'exit')
  const origin = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      reject(new Error(`The gateway did not start in time:\n${output}`))
    }, START_MS)
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
      const found = /is up at (\S+)/.exec(output)?.[1]
      if (found === undefined) return
      clearTimeout(timer)
      resolve(found)
    })
    void exited.then(() => {
      clearTimeout(timer)
      reject(new Error(`The gateway ended:\n${output}`))
    })
  })
  return {
    origin,
    local: env.PORT === undefined ? origin : `http://127.0.0.1:${env.PORT}`,
    process: child,
    output: () => output,
    stop: async () => {
      child.kill('SIGTERM')
      await exited
      return child.exitCode
    },
  }
}
