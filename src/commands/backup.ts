/** `bursar backup --out FILE` and `bursar restore FILE`: the whole database as one file. */
import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { readConfig } from '../core/config/read-config.ts'
import { deploymentFaults } from '../records/decisions/deployment.ts'
import { loadBackup } from '../runtime.ts'
import { onAuditDatabase, readDataKey } from './audit-database.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** @returns the exit code. @throws Error whose message is for a person. */
export async function backup(out: string, env: Environment): Promise<number> {
  const { databaseUrl, dataDirectory } = readConfig(env)
  const file = resolve(out)
  if (existsSync(file)) throw new Error(`${out} exists. A backup never replaces a file.`)
  // Refuses a database that is missing or not migrated.
  await onAuditDatabase(env, async () => {}, 'Stop the gateway first: the embedded database has one process.')
  const { dumpPostgres, dumpEmbedded } = await loadBackup()
  await (databaseUrl === null ? dumpEmbedded(dataDirectory, file) : dumpPostgres(databaseUrl, file))
  process.stdout.write(
    `Saved in ${file}. Keep the secrets elsewhere: without DATA_KEY and the keys of the chain it restores nothing of use.\n`,
  )
  return 0
}

/** @returns the exit code: 1 if the configured secrets are not those of the backup. @throws Error whose message is for a person. */
export async function restore(path: string, env: Environment): Promise<number> {
  const { databaseUrl, dataDirectory } = readConfig(env)
  const file = resolve(path)
  if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true)
    throw new Error(`${path} does not exist, or is no file.`)
  if (databaseUrl === null && dataDirectory === 'memory')
    throw new Error('DATA_DIR=memory stores nothing. Set DATA_DIR or DATABASE_URL.')
  const { restorePostgres, restoreEmbedded } = await loadBackup()
  await (databaseUrl === null ? restoreEmbedded(dataDirectory, file) : restorePostgres(databaseUrl, file))
  return onAuditDatabase(env, async (database, config) => {
    const dataKey = await readDataKey(database, config)
    const faults = await deploymentFaults(database, { dataKey, chainId: null, chainOwners: null })
    for (const fault of faults) process.stderr.write(`${fault}\n`)
    if (faults.length > 0) return 1
    process.stdout.write('Restored. Run "bursar audit verify", then start one gateway.\n')
    return 0
  })
}
