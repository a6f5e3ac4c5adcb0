/** A PostgreSQL server whose log pgBackRest archives, and which it restores to a point in time. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../free-port.ts'
import {
  canReplicate,
  command,
  idsOfPostgres,
  isRoot,
  query,
  run,
  untilConnected,
} from './replicated-postgres.ts'

const PGBACKREST = '/usr/bin/pgbackrest'

export const canArchive = canReplicate && existsSync(PGBACKREST)

export interface ArchivedPostgres {
  /** Of an empty database. */
  readonly url: string
  backUp(): void
  /** Names this moment in the log. */
  mark(name: string): Promise<void>
  /** Ends the server like a power cut; all that it has logged is in the archive. */
  kill(): Promise<void>
  /** Replaces the killed server's files by those of a marked moment, and starts it. */
  restoreTo(name: string): Promise<void>
  close(): Promise<void>
}

/** Starts one on a free port of 127.0.0.1, with its archive in the same directory. */
export async function startArchivedPostgres(): Promise<ArchivedPostgres> {
  const root = mkdtempSync(join(tmpdir(), 'bursar-archived-'))
  const [data, sockets, repository, settings] = ['data', 'sockets', 'repository', 'pgbackrest.conf'].map(
    (name) => join(root, name),
  )
  if (data === undefined || sockets === undefined || repository === undefined || settings === undefined)
    throw new Error('four paths')
  for (const directory of [sockets, repository]) mkdirSync(directory)
  const port = await freePort()
  writeFileSync(
    settings,
    `[global]
repo1-path=${repository}
log-path=${root}
lock-path=${root}
spool-path=${root}
start-fast=y
repo1-retention-full=1
log-level-console=warn
log-level-file=off
[bursar]
pg1-path=${data}
pg1-port=${port}
pg1-socket-path=${sockets}
pg1-user=postgres
`,
  )
  if (isRoot) for (const path of [root, sockets, repository, settings]) chownSync(path, ...idsOfPostgres())
  const backrest = (...words: readonly string[]) => {
    const all = [PGBACKREST, `--config=${settings}`, '--stanza=bursar', ...words]
    const [path = '', ...rest] = isRoot ? ['/usr/sbin/runuser', '-u', 'postgres', '--', ...all] : all
    execFileSync(path, rest, { stdio: ['ignore', 'ignore', 'inherit'], cwd: '/' })
  }
  const admin = `postgres://postgres@127.0.0.1:${port}/postgres`
  let server: ChildProcess | undefined
  const start = async () => {
    server = spawn(...command('postgres', '-D', data, '-p', String(port)), { stdio: 'ignore' })
    await untilConnected(admin)
  }
  const kill = async () => {
    const ended = server === undefined || server.exitCode !== null ? undefined : once(server, 'exit')
    const [pid] = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')
    process.kill(Number(pid), 'SIGKILL')
    await ended
    rmSync(join(data, 'postmaster.pid'), { force: true })
  }
  run('initdb', '-D', data, '-U', 'postgres', '-A', 'trust', '--no-sync')
  appendFileSync(
    join(data, 'postgresql.conf'),
    `listen_addresses = '127.0.0.1'
unix_socket_directories = '${sockets}'
shared_buffers = 32MB
max_connections = 40
archive_mode = on
archive_command = '${PGBACKREST} --config=${settings} --stanza=bursar archive-push %p'
`,
  )
  await start()
  await query(admin, 'create database bursar')
  backrest('stanza-create')
  return {
    url: `postgres://postgres@127.0.0.1:${port}/bursar`,
    backUp: () => backrest('--type=full', 'backup'),
    mark: (name) => query(admin, `select pg_create_restore_point('${name}')`),
    kill: async () => {
      backrest('check')
      await kill()
    },
    restoreTo: async (name) => {
      backrest('--delta', '--type=name', `--target=${name}`, '--target-action=promote', 'restore')
      await start()
      // Hot standby answers before the recovery has ended.
      await query(admin, `do $$ begin while pg_is_in_recovery() loop perform pg_sleep(0.1); end loop; end $$`)
    },
    close: async () => {
      if (existsSync(join(data, 'postmaster.pid'))) await kill().catch(() => {})
      rmSync(root, { recursive: true, force: true })
    },
  }
}
