import { createHash } from 'node:crypto'
import { namesIn, readSql } from './sql-files.ts'

/**
 * @property text creates or replaces the function and its triggers. @property hash hash of the text.
 * @property headHash hash of the part before the body: a function with a changed head cannot be replaced in place.
 */
export interface DatabaseFunction {
  readonly name: string
  readonly text: string
  readonly hash: string
  readonly headHash: string
}

/** @throws Error when the file does not create the function it is named for. */
export function readFunction(name: string, text: string): DatabaseFunction {
  const [head, made] = /^create or replace function (\w+)\b.*?\bas \$\$/ms.exec(text) ?? []
  if (head === undefined || made !== name)
    throw new Error(`${name}.sql must contain "create or replace function ${name}".`)
  return { name, text, hash: sha256(text), headHash: sha256(head) }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** All database functions, one file each in `sql/functions/<domain>`. */
export const functions: readonly DatabaseFunction[] = namesIn('functions/').flatMap((domain) =>
  namesIn(`functions/${domain}/`).map((file) =>
    readFunction(file.replace(/\.sql$/, ''), readSql(`functions/${domain}/${file}`)),
  ),
)
