/**
 * A directory that is its user's alone: the embedded database holds sessions' secrets and the key of sealed data in files,
 * and its engine makes them open to everybody.
 */
import { chmodSync, lstatSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const DIRECTORY_MODE = 0o700
const FILE_MODE = 0o600
const OF_OTHERS = 0o077

/** Makes a directory if need be, and takes it and all that is in it from everybody but its user. */
export function makePrivate(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: DIRECTORY_MODE })
  for (const path of findSharedPaths(directory))
    chmodSync(path, lstatSync(path).isDirectory() ? DIRECTORY_MODE : FILE_MODE)
}

/** The paths of a directory, itself included, that others than its user may read, write or enter. */
export function findSharedPaths(directory: string): string[] {
  const inside = readdirSync(directory, { recursive: true, encoding: 'utf8' })
  return [directory, ...inside.map((name) => join(directory, name))].filter((path) => {
    const { mode } = lstatSync(path, { throwIfNoEntry: false }) ?? { mode: 0 }
    return (mode & OF_OTHERS) !== 0 && !isLink(mode)
  })
}

/** Whether a mode is that of a symbolic link, which has no rights of its own. */
function isLink(mode: number): boolean {
  return (mode & 0o170000) === 0o120000
}
