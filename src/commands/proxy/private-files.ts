/** Files of the proxy, for its user only. A file is there whole or not at all, also after a kill or a loss of power. */
import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { randomToken } from '../../core/base/ids.ts'

/** End of the name of a file that is being written. */
const UNFINISHED = '.new'

/** @returns null if there is none. */
export function readFile(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}

export function makeFolder(...parts: readonly string[]): string {
  const path = join(...parts)
  mkdirSync(path, { recursive: true, mode: 0o700 })
  return path
}

/** Creates a file; one that another process has created meanwhile is left as it is. */
export function createFile(path: string, content: string): void {
  const written = writeBeside(path, content)
  try {
    linkSync(written, path)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  } finally {
    rmSync(written, { force: true })
  }
}

export function replaceFile(path: string, content: string): void {
  renameSync(writeBeside(path, content), path)
  syncFolder(path)
}

/** Removes files of a folder that processes which were killed had not finished. */
export function removeUnfinished(folder: string): void {
  for (const name of readdirSync(folder))
    if (name.endsWith(UNFINISHED)) rmSync(join(folder, name), { force: true })
}

export function removeFile(path: string): void {
  rmSync(path, { force: true })
  syncFolder(path)
}

function writeBeside(path: string, content: string): string {
  const beside = `${path}.${randomToken(9)}${UNFINISHED}`
  const file = openSync(beside, 'wx', 0o600)
  try {
    // Unlike `writeSync` it writes all or throws, on a full disk too.
    writeFileSync(file, content)
    fsyncSync(file)
  } catch (error) {
    rmSync(beside, { force: true })
    throw error
  } finally {
    closeSync(file)
  }
  return beside
}

function syncFolder(path: string): void {
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
