/**
 * Which of a journey's kills run: all on PostgreSQL; of those on PGlite two, chosen by the hash of the commit, so that each commit tries
 * others. `KILLS=all` runs all on both.
 */
import { execFileSync } from 'node:child_process'

const SHARE = 2

/** @returns the kills of this run, in their order. */
export function selectKills<T>(all: readonly T[], isPostgres: boolean): readonly T[] {
  if (isPostgres || process.env.KILLS === 'all' || all.length <= SHARE) return all
  const first = readHash() % all.length
  const chosen = Array.from(
    { length: SHARE },
    (_, at) => (first + at * Math.ceil(all.length / SHARE)) % all.length,
  )
  return all.filter((_, at) => chosen.includes(at))
}

function readHash(): number {
  try {
    return Number.parseInt(execFileSync('git', ['rev-parse', '--short=8', 'HEAD'], { encoding: 'utf8' }), 16)
  } catch {
    return 0 // No repository, such as in an unpacked archive.
  }
}
