/** The SQL of the database, read from `src/storage/sql` of the project: its README says how the files are applied. */
import { readdirSync, readFileSync } from 'node:fs'
import { projectRoot } from '../base/project-root.ts'

const folder = new URL('src/storage/sql/', projectRoot())

/** The names in a folder, sorted. @param path relative to `sql/`, with a slash at its end. */
export function namesIn(path: string): readonly string[] {
  return readdirSync(new URL(path, folder)).sort()
}

/** The text of a file. @param path relative to `sql/`. */
export function readSql(path: string): string {
  return readFileSync(new URL(path, folder), 'utf8')
}
