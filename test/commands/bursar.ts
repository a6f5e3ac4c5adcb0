/** The command line as a child process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'

export interface CommandResult {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** A running command. @property out standard output so far. @property err standard error so far. */
export interface RunningCommand {
  readonly out: () => string
  readonly err: () => string
  /** As Ctrl-C does. */
  readonly interrupt: () => void
  /** Reads no more of what it writes to standard error, as a pipe whose other end has gone. */
  readonly closeErr: () => void
  readonly ended: Promise<CommandResult>
}

/** Runs `bursar` with arguments and waits for its exit. @param env replaces a minimal sandbox environment. */
export function bursar(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  return startBursar(args, env).ended
}

/** Starts `bursar` with arguments. */
export function startBursar(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): RunningCommand {
  const child = spawn(process.execPath, ['.build/bin/main.js', ...args], {
    env: {
      PATH: process.env.PATH ?? '',
      PORT: '0',
      DATA_DIR: 'memory',
      CHAIN: 'simulated',
      LOG_LEVEL: 'warn',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output.out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output.err += text
  })
  const ended = once(child, 'close').then(() => ({ code: child.exitCode, ...output }))
  return {
    out: () => output.out,
    err: () => output.err,
    interrupt: () => child.kill('SIGINT'),
    closeErr: () => child.stderr.destroy(),
    ended,
  }
}
