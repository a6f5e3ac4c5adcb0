/** Copies of a whole database as one file: PostgreSQL's by its own programs, the embedded engine's by its own dump. */
import { spawn } from 'node:child_process'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { systemClock } from '../core/base/clock.ts'
import { makePrivate } from '../core/base/private-directory.ts'
import { lockDirectory } from './directory-lock.ts'

/** @param file is written; it must not exist. @throws Error naming what is missing or in use. */
export async function dumpPostgres(url: string, file: string): Promise<void> {
  const { address, env } = parseConnection(url)
  await runProgram('pg_dump', ['--format=custom', '--no-owner', `--file=${file}`, `--dbname=${address}`], env)
}

/** Restores everything or nothing. @throws Error when the database is not empty. */
export async function restorePostgres(url: string, file: string): Promise<void> {
  const { address, env } = parseConnection(url)
  const options = ['--exit-on-error', '--single-transaction', '--no-owner']
  await runProgram('pg_restore', [...options, `--dbname=${address}`, file], env)
}

/** @throws Error when a gateway has the directory. */
export async function dumpEmbedded(directory: string, file: string): Promise<void> {
  const unlock = lockDirectory(directory, systemClock())
  try {
    const pglite = await PGlite.create({ dataDir: join(directory, 'cluster') })
    try {
      await pglite.exec('CHECKPOINT')
      const archive = await pglite.dumpDataDir('gzip')
      await writeFile(file, new Uint8Array(await archive.arrayBuffer()), { flag: 'wx', mode: 0o600 })
    } finally {
      await pglite.close()
    }
  } finally {
    unlock()
  }
}

/** @throws Error when the directory holds a database, or a gateway has it. */
export async function restoreEmbedded(directory: string, file: string): Promise<void> {
  const archive = new Blob([await readFile(file)])
  makePrivate(directory)
  const unlock = lockDirectory(directory, systemClock())
  try {
    const cluster = join(directory, 'cluster')
    const unfinished = join(directory, 'cluster.unfinished')
    if (existsSync(cluster) && !existsSync(unfinished))
      throw new Error(`${directory} holds a database. Move it away, or set DATA_DIR to another directory.`)
    writeFileSync(unfinished, '')
    rmSync(cluster, { recursive: true, force: true })
    try {
      const pglite = await PGlite.create({ dataDir: cluster, loadDataDir: archive })
      await pglite.close()
    } catch (cause) {
      rmSync(cluster, { recursive: true, force: true })
      rmSync(unfinished)
      const why = cause instanceof Error ? cause.message : String(cause)
      throw new Error(`${file} is damaged, or no backup of an embedded database (${why}).`, { cause })
    }
    makePrivate(directory)
    rmSync(unfinished)
  } finally {
    unlock()
  }
}

/** The password goes by the environment: every user of a machine can read the arguments of a process. */
function parseConnection(url: string): { address: string; env: Record<string, string> } {
  const [, head = '', password] = /^(\w+:\/\/[^:@/]*):([^@/]*)@/.exec(url) ?? []
  if (password === undefined) return { address: url, env: {} }
  const address = `${head}${url.slice(head.length + 1 + password.length)}`
  return { address, env: { PGPASSWORD: decodeURIComponent(password) } }
}

function runProgram(name: string, args: readonly string[], env: Record<string, string>): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(name, args, {
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    child.once('error', () =>
      reject(new Error(`${name} cannot be started. Install PostgreSQL's client of the server's version.`)),
    )
    child.once('close', (code) =>
      code === 0 ? resolve() : reject(new Error(`${name} failed: ${said.trim().slice(0, 2_000)}`)),
    )
  })
}
