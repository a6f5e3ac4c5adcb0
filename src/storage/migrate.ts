/** Applies migrations with Kysely's Migrator, whose advisory lock lets several processes start at once. */
import { type Kysely, type Migration, Migrator, sql } from 'kysely'
import { migrations } from './migrations.ts'
import type { Schema } from './schema.ts'

function migratorOn(kysely: Kysely<Schema>): Migrator {
  const entries = Object.entries(migrations).map(([name, text]): [string, Migration] => [
    name,
    { up: async (transaction) => void (await sql.raw(text).execute(transaction)) },
  ])
  return new Migrator({ db: kysely, provider: { getMigrations: async () => Object.fromEntries(entries) } })
}

/** Applies what is missing, all of it or nothing, and answers the names. @throws what the database said. */
export async function migrateToLatest(kysely: Kysely<Schema>): Promise<readonly string[]> {
  const { error, results = [] } = await migratorOn(kysely).migrateToLatest()
  if (error !== undefined) throw error
  return results.map(({ migrationName }) => migrationName)
}

/** The migrations that the database does not have yet. */
export async function missingMigrations(kysely: Kysely<Schema>): Promise<readonly string[]> {
  const all = await migratorOn(kysely).getMigrations()
  return all.filter(({ executedAt }) => executedAt === undefined).map(({ name }) => name)
}
