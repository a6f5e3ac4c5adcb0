/** `bursar migrate`: applies missing migrations. Commands may import the base, the runtime and identity. */

import { createLog } from '../core/base/log.ts'
import { readConfig } from '../core/config/read-config.ts'
import { openDatabase } from '../runtime.ts'

export async function migrate(env: Readonly<Record<string, string | undefined>>): Promise<number> {
  const config = readConfig(env)
  const database = await openDatabase(config, createLog('warn'))
  try {
    const applied = await database.migrate()
    process.stdout.write(
      applied.length === 0 ? 'The database is up to date.\n' : `Applied ${applied.join(', ')}.\n`,
    )
    return 0
  } finally {
    await database.close()
  }
}
