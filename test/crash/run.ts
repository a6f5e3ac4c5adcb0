/**
 * `npm run crash-test`: ten thousand purchases from sellers that lie, with gateways killed meanwhile. `-- --budgets`: a million
 * spends through random trees of keys, with processes killed meanwhile; `--spends N` for another number.
 */
import { spawnSync } from 'node:child_process'
import { crashBudgets } from './budgets.ts'

const args = process.argv.slice(2)
if (args.includes('--budgets')) {
  const named = args.indexOf('--spends')
  const spends = named === -1 ? 1_000_000 : Number(args[named + 1])
  if (!Number.isInteger(spends) || spends < 1) throw new Error('--spends needs a whole number')
  process.exitCode = (await crashBudgets(spends)) ? 0 : 1
} else {
  const storm = [
    'vitest',
    'run',
    '--config',
    'test/vitest.config.ts',
    'test/rails/buying/storm.journey.test.ts',
  ]
  const env = { ...process.env, STORM_PURCHASES: process.env.STORM_PURCHASES ?? '10000' }
  process.exitCode = spawnSync('npx', [...storm, ...args], { stdio: 'inherit', env }).status ?? 1
}
