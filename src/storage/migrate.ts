/**
 * Updates a database: tables with Kysely's Migrator, then functions. Both run under the Migrator's advisory lock, so
 * that several processes can start at once.
 */
import {
  DEFAULT_MIGRATION_LOCK_TABLE,
  DEFAULT_MIGRATION_TABLE,
  type Kysely,
  MIGRATION_LOCK_ID,
  type Migration,
  Migrator,
  PostgresAdapter,
  sql,
} from 'kysely'
import { VERSION } from '../core/base/version.ts'
import { applyFunctions, changedFunctions } from './apply-functions.ts'
import { functions } from './functions.ts'
import { migrations } from './migrations.ts'
import type { Schema } from './schema.ts'

const program = { functions, version: VERSION }

/** Migrations of this program. */
const names = Object.keys(migrations)

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
      const { error, results = [] } = (await isUpToDate(connection))
        ? {}
        : await migratorOn(connection).migrateToLatest()
      if (error !== undefined) throw error
      const applied = await applyFunctions(connection, program)
      // Partitions that a migration has just made lack the triggers of their tables.
      if (applied.length > 0) await guardPartitions(connection)
      return [...results.map(({ migrationName }) => migrationName), ...applied.map(functionLabel)]
    } finally {
      await adapter.releaseMigrationLock(connection, lock)
    }
  })
}

async function guardPartitions(connection: Kysely<Schema>): Promise<void> {
  await sql`select partition_guard(relname) from pg_class
    where relkind = 'p' and relnamespace = current_schema()::regnamespace`.execute(connection)
}

/** Lists missing migrations, and functions that differ from this program's. */
export async function missingMigrations(kysely: Kysely<Schema>): Promise<readonly string[]> {
  const executed = await executedMigrations(kysely)
  const missing = names.filter((name) => !executed.has(name))
  // The first migration creates the table of applied functions.
  const changed =
    missing.length === names.length
      ? functions.map(({ name }) => name)
      : await changedFunctions(kysely, program)
  return [...missing, ...changed.map(functionLabel)]
}

/** The Migrator reads the whole catalogue several times, which is most of the SQL of a start that has nothing to do. */
async function isUpToDate(kysely: Kysely<Schema>): Promise<boolean> {
  const executed = await executedMigrations(kysely)
  return executed.size === names.length && names.every((name) => executed.has(name))
}

async function executedMigrations(kysely: Kysely<Schema>): Promise<ReadonlySet<string>> {
  const table = sql.table(DEFAULT_MIGRATION_TABLE)
  const { rows: found } = await sql<{ table: string | null }>`
    select to_regclass(${DEFAULT_MIGRATION_TABLE})::text as table`.execute(kysely)
  if ((found[0]?.table ?? null) === null) return new Set()
  const { rows } = await sql<{ name: string }>`select name from ${table}`.execute(kysely)
  return new Set(rows.map(({ name }) => name))
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
