/**
 * Updates a database: tables with Kysely's Migrator, then functions. Both run under the Migrator's advisory lock, so
 * that several processes can start at once.
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
 * Applies everything that is missing. Tables are applied all or none, and so are functions. @returns the applied
 * names. @throws database errors, and an Error when a newer program has migrated the database.
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

/** Lists missing migrations, and functions that differ from this program's. */
export async function missingMigrations(kysely: Kysely<Schema>): Promise<readonly string[]> {
  const all = await migratorOn(kysely).getMigrations()
  const missing = all.filter(({ executedAt }) => executedAt === undefined).map(({ name }) => name)
  // The first migration creates the table of applied functions.
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
