import { createHash } from 'node:crypto'
import { namesIn, readSql } from './sql-files.ts'

/**
 * A database function. @property text makes the function and its triggers, or replaces them. @property hash of the text.
 * @property headHash of the part before the body: a function whose head changes cannot be replaced in place.
 */
export interface DatabaseFunction {
  readonly name: string
  readonly text: string
  readonly hash: string
  readonly headHash: string
}

/** The function that a file makes. @throws Error where the file does not make the function that it is named for. */
export function readFunction(name: string, text: string): DatabaseFunction {
  const [head, made] = /^create or replace function (\w+)\b.*?\bas \$\$/ms.exec(text) ?? []
  if (head === undefined || made !== name)
    throw new Error(`${name}.sql must contain "create or replace function ${name}".`)
  return { name, text, hash: sha256(text), headHash: sha256(head) }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** Every function of the database: a file each in `sql/functions/<domain>`. */
export const functions: readonly DatabaseFunction[] = namesIn('functions/').flatMap((domain) =>
  namesIn(`functions/${domain}/`).map((file) =>
    readFunction(file.replace(/\.sql$/, ''), readSql(`functions/${domain}/${file}`)),
  ),
)
