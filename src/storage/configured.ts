import { systemClock } from '../core/base/clock.ts'
import type { Log } from '../core/base/log.ts'
import type { Config } from '../core/config/read-config.ts'
import type { Database, Doorbell } from './database.ts'

type DatabaseConfig = Pick<Config, 'databaseUrl' | 'databasePoolerUrl' | 'dataDirectory'>

/** Opens the database of a configuration; each engine is loaded only when it is used. @param isPatient without time limits. @throws Error that says what to do. */
export async function openDatabase(
  { databaseUrl, databasePoolerUrl, dataDirectory }: DatabaseConfig,
  log: Log,
  { isPatient = false }: { readonly isPatient?: boolean } = {},
): Promise<Database> {
  if (databaseUrl !== null)
    return (await import('./postgres.ts')).openPostgres({
      url: databaseUrl,
      poolerUrl: databasePoolerUrl,
      isPatient,
    })
  return (await import('./pglite.ts')).openPglite({ directory: dataDirectory, now: systemClock, log })
}

/** Opens the doorbell of a configuration. The embedded database serves one process, which needs none. */
export async function openConfiguredDoorbell(
  { databaseUrl: url }: Pick<Config, 'databaseUrl'>,
  { onRing, log }: { readonly onRing: () => void; readonly log: Log },
): Promise<Doorbell> {
  if (url === null) return { ring: () => {}, close: async () => {} }
  return (await import('./doorbell.ts')).openDoorbell({ url, onRing, log })
}

/** Opens the database with all migrations and functions applied; the sandbox applies them itself. @throws Error where some are missing. */
export async function openMigrated(
  config: DatabaseConfig & Pick<Config, 'mode'>,
  log: Log,
): Promise<Database> {
  const database = await openDatabase(config, log)
  try {
    if (config.mode === 'sandbox') await database.migrate()
    const pending = await database.pendingMigrations()
    if (pending.length > 0)
      throw new Error(
        `The database lacks ${pending.length} migrations or functions (${pending.join(', ')}). Run "bursar migrate".`,
      )
    return database
  } catch (error) {
    await database.close()
    throw error
  }
}
