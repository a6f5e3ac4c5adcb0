/**
 * `npm run verify-books`: how long a million decisions take to verify (`-- --decisions N`). A gateway spends in every way, its books
 * are exported and grown to that number, each receipt signed, and the verifier of docs/verify/ recomputes them.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { bursar } from '../../commands/bursar.ts'
import { startGateway } from '../../journeys/gateway.ts'
import { spendInEveryWay } from './spend-in-every-way.ts'

/** The newest decisions are sealed within seconds. */
const SEAL_MS = 3_000
const MAX_SECONDS = 60
const DEFAULT_DECISIONS = 1_000_000

const say = (text: string) => process.stdout.write(`${text}\n`)

/** Runs a program of Python. @returns its seconds. */
function time(args: readonly string[]): number {
  const startedAt = performance.now()
  const { status } = spawnSync('python3', args, { stdio: ['ignore', 'inherit', 'inherit'] })
  if (status !== 0) throw new Error(`python3 ${args.join(' ')} ended with ${status}`)
  return (performance.now() - startedAt) / 1_000
}

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { decisions: { type: 'string' } } })
  const decisions = Number(values.decisions ?? DEFAULT_DECISIONS)
  if (!Number.isInteger(decisions) || decisions < 1) throw new Error('--decisions needs a whole number')
  const directory = mkdtempSync(join(tmpdir(), 'bursar-grown-'))
  try {
    const env = { DATA_DIR: join(directory, 'data'), CHAIN: 'simulated' }
    const gateway = await startGateway(env)
    try {
      await spendInEveryWay(gateway)
      await pause(SEAL_MS)
    } finally {
      await gateway.stop()
    }
    const [small, grown] = [join(directory, 'small'), join(directory, 'grown')]
    const month = new Date().toISOString().slice(0, 7)
    const exported = await bursar(['export', '--month', month, '--out', small], env)
    if (exported.code !== 0) throw new Error(exported.err)
    const grownIn = time(['test/records/decisions/grow_bundle.py', small, grown, String(decisions)])
    say(`${decisions} decisions made and signed in ${grownIn.toFixed(1)} s.`)
    const [before = 0] = loadavg()
    const seconds = time(['docs/verify/verify.py', grown, '--jwks', `${grown}.jwks.json`])
    const machine = `${cpus().length} cores, load ${before.toFixed(1)} before and ${(loadavg()[0] ?? 0).toFixed(1)} after`
    say(`Verified in ${seconds.toFixed(1)} s of at most ${MAX_SECONDS} for a million; ${machine}.`)
    return seconds <= (MAX_SECONDS * decisions) / DEFAULT_DECISIONS ? 0 : 1
  } finally {
    if (process.env.KEEP_BOOKS === undefined) rmSync(directory, { recursive: true, force: true })
  }
}

process.exitCode = await main()
