/** A PostgreSQL primary with a synchronous standby, both started by the test. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  appendFileSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { freePort } from '../free-port.ts'

/** Folder of the server's programs; undefined where they are not installed. */
const programs = findPrograms()

/** The server refuses to run as root; a system user of its own runs it then. */
export const isRoot = process.getuid?.() === 0

export const canReplicate = programs !== undefined && (!isRoot || existsSync('/usr/sbin/runuser'))

export interface ReplicatedPostgres {
  /** URL with both hosts, of an empty database. */
  readonly url: string
  readonly primaryUrl: string
  readonly standbyUrl: string
  /** Ends the primary like a power cut. */
  killPrimary(): Promise<void>
  /** Starts the former primary again, which does not know that it was replaced. */
  restartPrimary(): Promise<void>
  promoteStandby(): Promise<void>
  close(): Promise<void>
}

/** Starts both servers on free ports of 127.0.0.1. */
export async function startReplicatedPostgres(): Promise<ReplicatedPostgres> {
  const root = mkdtempSync(join(tmpdir(), 'bursar-replicated-'))
  if (isRoot) chownSync(root, ...idsOfPostgres())
  const [one, two] = [await freePort(), await freePort()]
  const [primary, standby] = [join(root, 'primary'), join(root, 'standby')]
  run('initdb', '-D', primary, '-U', 'postgres', '-A', 'trust', '--no-sync')
  appendFileSync(
    join(primary, 'postgresql.conf'),
    "listen_addresses = '127.0.0.1'\nunix_socket_directories = ''\nshared_buffers = 32MB\nmax_connections = 40\n",
  )
  const urlAt = (ports: string, name: string) => `postgres://postgres@${ports}/${name}`
  const at = (port: number) => `127.0.0.1:${port}`
  const running: ChildProcess[] = []
  const start = async (directory: string, port: number) => {
    const child = spawn(...command('postgres', '-D', directory, '-p', String(port)), { stdio: 'ignore' })
    running.push(child)
    await untilConnected(urlAt(at(port), 'postgres'))
  }
  const kill = async (directory: string) => {
    const [pid] = readFileSync(join(directory, 'postmaster.pid'), 'utf8').split('\n')
    process.kill(Number(pid), 'SIGKILL')
  }
  await start(primary, one)
  await query(urlAt(at(one), 'postgres'), 'create database bursar')
  run(
    'pg_basebackup',
    '-D',
    standby,
    '-R',
    '-X',
    'stream',
    '-c',
    'fast',
    '-d',
    `host=127.0.0.1 port=${one} user=postgres application_name=standby`,
  )
  await start(standby, two)
  await query(urlAt(at(one), 'postgres'), "alter system set synchronous_standby_names = 'standby'")
  await query(urlAt(at(one), 'postgres'), 'select pg_reload_conf()')
  const [primaryUrl, standbyUrl] = [urlAt(at(one), 'bursar'), urlAt(at(two), 'bursar')]
  return {
    url: urlAt(`${at(one)},${at(two)}`, 'bursar'),
    primaryUrl,
    standbyUrl,
    killPrimary: () => kill(primary),
    restartPrimary: async () => {
      rmSync(join(primary, 'postmaster.pid'), { force: true })
      await start(primary, one)
    },
    promoteStandby: async () => {
      await query(standbyUrl, 'select pg_promote(true, 10)')
    },
    close: async () => {
      for (const directory of [primary, standby])
        if (existsSync(join(directory, 'postmaster.pid'))) await kill(directory).catch(() => {})
      for (const child of running) child.kill('SIGKILL')
      await pause(200)
      rmSync(root, { recursive: true, force: true })
    },
  }
}

export async function query(url: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
  await client.connect()
  try {
    await client.query(text)
  } finally {
    await client.end()
  }
}

export async function untilConnected(url: string): Promise<void> {
  for (let attempt = 0; ; attempt += 1)
    try {
      return await query(url, 'select 1')
    } catch (error) {
      if (attempt === 200) throw error
      await pause(50)
    }
}

/** A program of the server, run by the user that may. */
export function command(program: string, ...rest: string[]): [string, string[]] {
  const path = join(programs ?? '', program)
  return isRoot ? ['/usr/sbin/runuser', ['-u', 'postgres', '--', path, ...rest]] : [path, rest]
}

export function run(program: string, ...rest: string[]): void {
  const [path, parameters] = command(program, ...rest)
  execFileSync(path, parameters, { stdio: ['ignore', 'ignore', 'pipe'], cwd: '/' })
}

export function idsOfPostgres(): [number, number] {
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return [id('-u'), id('-g')]
}

function findPrograms(): string | undefined {
  const root = '/usr/lib/postgresql'
  if (!existsSync(root)) return undefined
  return readdirSync(root)
    .map((version) => join(root, version, 'bin'))
    .filter((folder) => existsSync(join(folder, 'pg_basebackup')) && existsSync(join(folder, 'initdb')))
    .at(-1)
}
