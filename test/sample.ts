import { execFileSync } from 'node:child_process'

/** Which part of the longest tests runs: all of them, or with SAMPLE=commit one of `parts`, chosen by the hash of the commit. */
export function isSampled(at: number, parts: number): boolean {
  if (process.env.SAMPLE !== 'commit') return true
  const hash = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' })
  return at % parts === Number.parseInt(hash.slice(0, 8), 16) % parts
}
