/**
 * One process at a time on a directory, also when the last one was killed. Each owner makes the file `owner.<n>` of the
 * next number, whole and at once (link), and the highest number owns. A stale owner is thus never deleted but outbid, and
 * of several that outbid it only one can make the next file. The highest file is never removed: not even by its owner, who
 * marks it as free instead, so that a number is not given out twice.
 */
import { linkSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomToken } from '../base/ids.ts'
import { isRunning, ownIdentity, type ProcessIdentity } from './process-identity.ts'

/** Files of earlier owners that stay, for processes that read the directory while it changes. */
const KEPT = 8

/** What an owner's file says. @property since ISO 8601. */
interface Owner extends ProcessIdentity {
  readonly since: string
  readonly free: boolean
}

/**
 * Takes a directory, which is made if need be, for this process.
 * @param at the moment that others are told this one has had it since.
 * @returns gives it back.
 * @throws Error naming the directory and the pid of the process that has it.
 */
export function lockDirectory(directory: string, at: Date): () => void {
  mkdirSync(directory, { recursive: true })
  const own: Owner = { ...ownIdentity(), since: at.toISOString(), free: false }
  for (;;) {
    const newest = generations(directory).at(-1) ?? 0
    const owner = newest === 0 ? undefined : ownerOf(directory, newest)
    if (owner !== undefined && !owner.free && isRunning(owner)) throw new Error(heldMessage(directory, owner))
    const next = newest + 1
    if (!create(directory, next, own)) continue
    // Whoever read an old state of the directory may have made a number that was long outbid.
    if (generations(directory).at(-1) !== next) {
      rmSync(fileOf(directory, next), { force: true })
      continue
    }
    for (const old of generations(directory).filter((generation) => generation < next - KEPT))
      rmSync(fileOf(directory, old), { force: true })
    return () => replace(directory, next, { ...own, free: true })
  }
}

function heldMessage(directory: string, { pid, since }: Owner): string {
  return (
    `The database directory ${directory} is in use by process ${pid}, since ${since}. ` +
    'The embedded database takes one process at a time: a second one would lose rows. ' +
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

function fileOf(directory: string, generation: number): string {
  return join(directory, `owner.${generation}`)
}

/** The owner that a file names; undefined where it was removed just now: the directory must be read again anyway. */
function ownerOf(directory: string, generation: number): Owner | undefined {
  try {
    const owner: unknown = JSON.parse(readFileSync(fileOf(directory, generation), 'utf8'))
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

/** Makes an owner's file, whole or not at all. @returns false where somebody else was first. */
function create(directory: string, generation: number, owner: Owner): boolean {
  const draft = writeDraft(directory, owner)
  try {
    linkSync(draft, fileOf(directory, generation))
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

function replace(directory: string, generation: number, owner: Owner): void {
  renameSync(writeDraft(directory, owner), fileOf(directory, generation))
}

function writeDraft(directory: string, owner: Owner): string {
  const draft = join(directory, `draft-${randomToken(9)}`)
  writeFileSync(draft, `${JSON.stringify(owner)}\n`, { flag: 'wx', mode: 0o600 })
  return draft
}
