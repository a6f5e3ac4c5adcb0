import { namesIn, readSql } from './sql-files.ts'

/**
 * The SQL of each migration by its name, in order, for PostgreSQL 15 and PGlite alike. A migration is a file, or a folder
 * whose files are applied together in the order of their names.
 */
export const migrations: Readonly<Record<string, string>> = Object.fromEntries(
  namesIn('migrations/').map((entry) =>
    entry.endsWith('.sql')
      ? [entry.slice(0, -'.sql'.length), readSql(`migrations/${entry}`)]
      : [
          entry,
          namesIn(`migrations/${entry}/`)
            .map((file) => readSql(`migrations/${entry}/${file}`))
            .join('\n'),
        ],
  ),
)
