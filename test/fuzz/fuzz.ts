/** A gateway on a database of its own, a campaign against it, and the audit of its books afterwards. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { trialBalance } from '../../src/books/ledger/trial-balance.ts'
import { systemClock } from '../../src/core/base/clock.ts'
import { silentLog } from '../../src/core/base/log.ts'
import { openPglite } from '../../src/storage/pglite.ts'
import { bursar } from '../commands/bursar.ts'
import { generousLimits } from '../generous-limits.ts'
import { startGateway } from '../journeys/gateway.ts'
import { type Outcome, runCampaign, type Size } from './campaign.ts'
import { createCast } from './cast.ts'

/** Memory limit of a gateway after a campaign, in MB. */
const MAX_MEMORY_MB = 1_500

/** A campaign and its aftermath. @property books accounting errors, as text. */
export interface Fuzzed {
  readonly origin: string
  readonly outcome: Outcome
  readonly books: readonly string[]
  readonly memoryMb: { readonly before: number; readonly after: number }
}

/** Runs a campaign against a new gateway. */
export async function runFuzz(
  size: Size,
  progress: (done: number, of: number, findings: number) => void,
): Promise<Fuzzed> {
  const directory = mkdtempSync(join(tmpdir(), 'bursar-fuzz-'))
  try {
    const gateway = await startGateway({ CHAIN: 'simulated', DATA_DIR: directory, ...generousLimits })
    const cast = createCast(gateway.origin)
    const before = readMemory(gateway.process.pid)
    let books: string[] = []
    let outcome: Outcome
    let after = before
    try {
      outcome = await runCampaign({ origin: gateway.origin, cast }, size, progress)
      // Jobs finish work of the last requests, and wallets are compared in turns.
      await pause(3_000)
      const judge = await cast.judge()
      const { status, body } = await judge.send('GET', '/api/admin/drift')
      after = readMemory(gateway.process.pid)
      books = [
        ...(status === 200 && JSON.stringify(body.drifts) === '[]'
          ? []
          : [`drift: ${status} ${JSON.stringify(body)}`]),
        ...(gateway.process.exitCode === null ? [] : ['the process has ended']),
        ...(after > MAX_MEMORY_MB ? [`the process holds ${after} MB`] : []),
        ...listLines(gateway.output(), /unexpected error|unhandled|ERR_|cannot be| failed/i),
      ]
    } finally {
      await gateway.stop()
    }
    const { code, out, err } = await bursar(['audit', 'verify'], { DATA_DIR: directory })
    if (code !== 0) books.push(`audit verify: ${out}${err}`)
    return {
      origin: gateway.origin,
      outcome,
      books: [...books, ...(await findUnbalanced(directory))],
      memoryMb: { before, after },
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

async function findUnbalanced(directory: string): Promise<string[]> {
  const database = await openPglite({ directory, now: systemClock, log: silentLog })
  try {
    const balance = await trialBalance(database)
    return balance.balanced
      ? []
      : [
          `the books do not balance: ${JSON.stringify(balance, (_, value) => (typeof value === 'bigint' ? String(value) : value))}`,
        ]
  } finally {
    await database.close()
  }
}

/** Resident memory of a process in MB; 0 if the system does not report it. */
function readMemory(pid: number | undefined): number {
  const path = `/proc/${pid}/status`
  if (!existsSync(path)) return 0
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(path, 'utf8'))?.[1] ?? 0) / 1024)
}

function listLines(text: string, pattern: RegExp): string[] {
  const lines = text.split('\n').filter((line) => pattern.test(line))
  return [...new Set(lines.map((line) => line.replaceAll(/"(time|requestId)":"[^"]*"/g, '')))].slice(0, 20)
}
