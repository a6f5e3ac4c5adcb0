/** Global setup: migrates one database on the PostgreSQL test server, of which tests get copies. */
import { openPostgres } from '../src/storage/postgres.ts'
import { createEmptyDatabase, testServerUrl } from './engines.ts'

export async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (testServerUrl === undefined) return undefined
  const { url, name, drop } = await createEmptyDatabase(testServerUrl)
  const database = await openPostgres({ url })
  await database.migrate()
  await database.close()
  // Workers inherit it.
  process.env.TEST_DATABASE_TEMPLATE = name
  return drop
}
