/** Reads SQL files from `src/storage/sql`; its README describes how they are applied. */
import { readdirSync, readFileSync } from 'node:fs'
import { projectRoot } from '../core/base/project-root.ts'

const folder = new URL('src/storage/sql/', projectRoot())

/** Lists file names, sorted. @param path relative to `sql/`, with a trailing slash. */
export function namesIn(path: string): readonly string[] {
  return readdirSync(new URL(path, folder)).sort()
}

/** @param path relative to `sql/`. */
export function readSql(path: string): string {
  return readFileSync(new URL(path, folder), 'utf8')
}
