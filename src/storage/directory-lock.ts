/**
 * Restricts a directory to one process, even after a kill. Each owner atomically creates the file `owner.<n>` with
 * the next number (link), and the highest number owns the directory. A stale owner is therefore never deleted but
 * superseded, and only one of several successors can create the next file. The highest file is never removed: its
 * owner marks it as free instead, so that no number is reused.
 */
import { linkSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomToken } from '../core/base/ids.ts'
import { isRunning, ownIdentity, type ProcessIdentity } from './process-identity.ts'

/** Number of earlier owner files to keep, for processes that are reading the directory. */
const KEPT = 8

/** Content of an owner file. @property since ISO 8601. */
interface Owner extends ProcessIdentity {
  readonly since: string
  readonly free: boolean
}

/**
 * Locks a directory for this process, creating it if needed. @param at start of the ownership, shown to other
 * processes. @returns a function that releases the lock. @throws Error naming the directory and the pid of the
 * current owner.
 */
export function lockDirectory(directory: string, at: Date): () => void {
  mkdirSync(directory, { recursive: true })
  const own: Owner = { ...ownIdentity(), since: at.toISOString(), free: false }
  for (;;) {
    const newest = generations(directory).at(-1) ?? 0
    const owner = newest === 0 ? undefined : readOwner(directory, newest)
    if (owner !== undefined && !owner.free && isRunning(owner)) throw new Error(heldMessage(directory, owner))
    const next = newest + 1
    if (!create(directory, next, own)) continue
    // A process with an outdated listing may have created a superseded number.
    if (generations(directory).at(-1) !== next) {
      rmSync(buildPath(directory, next), { force: true })
      continue
    }
    for (const old of generations(directory).filter((generation) => generation < next - KEPT))
      rmSync(buildPath(directory, old), { force: true })
    return () => replace(directory, next, { ...own, free: true })
  }
}

function heldMessage(directory: string, { pid, since }: Owner): string {
  return (
    `The database directory ${directory} is in use by process ${pid} since ${since}. ` +
    'The embedded database supports one process at a time: a second one would lose rows. ' +
    `Stop process ${pid}, or set DATA_DIR to another directory, or set DATABASE_URL to share a PostgreSQL server.`
  )
}

function generations(directory: string): number[] {
  return readdirSync(directory)
    .map((name) => /^owner\.(\d+)$/.exec(name)?.[1])
    .filter((digits) => digits !== undefined)
    .map(Number)
    .sort((left, right) => left - right)
}

function buildPath(directory: string, generation: number): string {
  return join(directory, `owner.${generation}`)
}

/** Reads an owner file; undefined if it was just removed, in which case the directory is read again. */
function readOwner(directory: string, generation: number): Owner | undefined {
  try {
    const owner: unknown = JSON.parse(readFileSync(buildPath(directory, generation), 'utf8'))
    return isOwner(owner) ? owner : undefined
  } catch {
    return undefined
  }
}

function isOwner(value: unknown): value is Owner {
  return (
    typeof value === 'object' &&
    value !== null &&
    'pid' in value &&
    Number.isInteger(value.pid) &&
    'started' in value &&
    typeof value.started === 'string' &&
    'since' in value &&
    typeof value.since === 'string' &&
    'free' in value &&
    typeof value.free === 'boolean'
  )
}

/** Creates an owner file atomically. @returns false if it already exists. */
function create(directory: string, generation: number, owner: Owner): boolean {
  const draft = writeDraft(directory, owner)
  try {
    linkSync(draft, buildPath(directory, generation))
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

function replace(directory: string, generation: number, owner: Owner): void {
  renameSync(writeDraft(directory, owner), buildPath(directory, generation))
}

function writeDraft(directory: string, owner: Owner): string {
  const draft = join(directory, `draft-${randomToken(9)}`)
  writeFileSync(draft, `${JSON.stringify(owner)}\n`, { flag: 'wx', mode: 0o600 })
  return draft
}
