/** The command line as a child process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'

export interface CommandResult {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** Runs `bursar` with arguments and waits for its exit. @param env replaces a minimal sandbox environment. */
export async function bursar(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
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
  await once(child, 'close')
  return { code: child.exitCode, ...output }
}
