/** Programs of the cluster, and the reason where one is missing. */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const NEEDED = ['patroni', 'etcd', 'redis-server', 'redis-sentinel', 'haproxy', 'ip', 'mount', 'setpriv']

/** Folder of PostgreSQL's own programs, the newest version. */
export const postgresPrograms = findPostgres()

/** Reason that no cluster can run on this machine; undefined if one can. */
export const whyNoCluster = findReason()

/** Full path of a program, which `ip netns exec` needs where PATH is that of a user. */
export function findProgram(name: string): string | undefined {
  return [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/bin', '/sbin', '/bin']
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path))
}

/** Runs a program to its end. @returns its output. @throws Error with what it wrote to standard error. */
export function run(program: string, ...rest: string[]): string {
  return execFileSync(findProgram(program) ?? program, rest, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: '/',
  })
}

function findReason(): string | undefined {
  if (process.platform !== 'linux') return 'network namespaces are a part of Linux'
  if (process.getuid?.() !== 0) return 'network namespaces need root'
  const missing = NEEDED.filter((name) => findProgram(name) === undefined)
  if (missing.length > 0) return `not installed: ${missing.join(', ')}`
  if (postgresPrograms === undefined) return 'not installed: postgresql'
  try {
    run('unshare', '--net', '--mount', 'true')
  } catch {
    return 'this machine allows no network namespaces'
  }
  return undefined
}

function findPostgres(): string | undefined {
  const root = '/usr/lib/postgresql'
  if (!existsSync(root)) return undefined
  return readdirSync(root)
    .map((version) => join(root, version, 'bin'))
    .filter((folder) => existsSync(join(folder, 'pg_rewind')))
    .at(-1)
}
