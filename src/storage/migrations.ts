import { namesIn, readSql } from './sql-files.ts'

/**
 * SQL of the migrations by name, in order, for PostgreSQL 15 and PGlite. A migration is a file, or a folder whose
 * files are applied together in name order.
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
