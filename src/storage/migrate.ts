/**
 * Brings a database up to date: tables with Kysely's Migrator, then functions. The Migrator's advisory lock is held for both,
 * so that several processes can start at once.
 */
import {
  DEFAULT_MIGRATION_LOCK_TABLE,
  type Kysely,
  MIGRATION_LOCK_ID,
  type Migration,
  Migrator,
  PostgresAdapter,
  sql,
} from 'kysely'
import { VERSION } from '../base/version.ts'
import { applyFunctions, changedFunctions } from './apply-functions.ts'
import { functions } from './functions.ts'
import { migrations } from './migrations.ts'
import type { Schema } from './schema.ts'

const program = { functions, version: VERSION }

const lock = { lockTable: DEFAULT_MIGRATION_LOCK_TABLE, lockRowId: MIGRATION_LOCK_ID }

/**
 * Applies what is missing and answers the names. Tables are applied whole or not at all, and so are functions.
 * @throws what the database said. @throws Error where a newer program has migrated the database.
 */
export async function migrateToLatest(kysely: Kysely<Schema>): Promise<readonly string[]> {
  const adapter = new PostgresAdapter()
  return kysely.connection().execute(async (connection) => {
    await adapter.acquireMigrationLock(connection, lock)
    try {
      const { error, results = [] } = await migratorOn(connection).migrateToLatest()
      if (error !== undefined) throw error
      const applied = await applyFunctions(connection, program)
      return [...results.map(({ migrationName }) => migrationName), ...applied.map(functionLabel)]
    } finally {
      await adapter.releaseMigrationLock(connection, lock)
    }
  })
}

/** The migrations that the database does not have yet, and the functions that are not those of this program. */
export async function missingMigrations(kysely: Kysely<Schema>): Promise<readonly string[]> {
  const all = await migratorOn(kysely).getMigrations()
  const missing = all.filter(({ executedAt }) => executedAt === undefined).map(({ name }) => name)
  // The first migration makes the table that functions are recorded in.
  const changed =
    missing.length === all.length
      ? functions.map(({ name }) => name)
      : await changedFunctions(kysely, program)
  return [...missing, ...changed.map(functionLabel)]
}

function functionLabel(name: string): string {
  return `function ${name}`
}

function migratorOn(kysely: Kysely<Schema>): Migrator {
  const entries = Object.entries(migrations).map(([name, text]): [string, Migration] => [
    name,
    { up: async (transaction) => void (await sql.raw(text).execute(transaction)) },
  ])
  return new Migrator({ db: kysely, provider: { getMigrations: async () => Object.fromEntries(entries) } })
}
