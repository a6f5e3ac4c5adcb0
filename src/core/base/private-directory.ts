/**
 * Restricts a directory to its user: the embedded database stores session secrets and the data key in files, which
 * its engine creates world-readable.
 */
import { chmodSync, lstatSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const DIRECTORY_MODE = 0o700
const FILE_MODE = 0o600
const OTHER_USERS_MASK = 0o077

/** Creates a directory if needed, and removes all access of other users to it and its content. */
export function makePrivate(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: DIRECTORY_MODE })
  for (const path of findSharedPaths(directory))
    chmodSync(path, lstatSync(path).isDirectory() ? DIRECTORY_MODE : FILE_MODE)
}

/** Lists the paths that other users can read, write or enter, including the directory itself. */
export function findSharedPaths(directory: string): string[] {
  const inside = readdirSync(directory, { recursive: true, encoding: 'utf8' })
  return [directory, ...inside.map((name) => join(directory, name))].filter((path) => {
    const { mode } = lstatSync(path, { throwIfNoEntry: false }) ?? { mode: 0 }
    return (mode & OTHER_USERS_MASK) !== 0 && !isLink(mode)
  })
}

/** Symbolic links have no permissions of their own. */
function isLink(mode: number): boolean {
  return (mode & 0o170000) === 0o120000
}
