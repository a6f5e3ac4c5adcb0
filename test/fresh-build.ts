/** Global setup: rebuilds if a source is newer than the build, because gateways in tests run from the build. */
import { execFileSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

const sources = ['src', 'mcp', 'tools', 'policies', '.build.mjs', 'package.json', 'tsconfig.json']
const built = '.build/bin/main.js'

export function setup(): void {
  const builtAt = statSync(built, { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (sources.some((path) => newest(path) > builtAt))
    execFileSync('npm', ['run', '--silent', 'build'], { stdio: ['ignore', 'inherit', 'inherit'] })
}

function newest(path: string): number {
  const { mtimeMs } = statSync(path)
  if (!statSync(path).isDirectory()) return mtimeMs
  const names = readdirSync(path).filter((name) => name !== '.build')
  return Math.max(...names.map((name) => newest(join(path, name))))
}
