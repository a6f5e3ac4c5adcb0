/** Opens the configured database for audits; never creates or migrates it. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { createLog } from '../core/base/log.ts'
import type { DataKey } from '../core/base/seal.ts'
import type { KeyConfig, KeyPlaces } from '../core/config/keys.ts'
import { type Config, readConfig } from '../core/config/read-config.ts'
import type { Keys } from '../providers/keys/port.ts'
import { openDataKey, openDataKeys } from '../records/decisions/data-key.ts'
import { readKeySet } from '../records/decisions/receipt-keys.ts'
import { type KeySet, openReceiptKey, type SigningKey } from '../records/decisions/signing-key.ts'
import { readHead, readSealed } from '../records/decisions/store.ts'
import { createConfiguredKeys, openDatabase } from '../runtime.ts'
import type { Database } from '../storage/database.ts'

/** A database without tables misses hundreds. */
const MAX_NAMES = 10

/**
 * Runs work on the configured database, then closes it. @param whileInUse advice when a gateway has it open.
 * @throws Error with a remedy when it cannot be opened.
 */
export async function onAuditDatabase<Result>(
  env: Readonly<Record<string, string | undefined>>,
  work: (database: Database, config: Config) => Promise<Result>,
  whileInUse = 'To verify an export while the gateway runs: bursar audit verify --from-export FILE.',
): Promise<Result> {
  const config = readConfig(env)
  const { databaseUrl, dataDirectory } = config
  if (databaseUrl === null && !existsSync(join(dataDirectory, 'cluster')))
    throw new Error(
      dataDirectory === 'memory'
        ? 'DATA_DIR=memory stores nothing. Set DATA_DIR or DATABASE_URL.'
        : `No database found in ${dataDirectory}. Set DATA_DIR or DATABASE_URL.`,
    )
  const database = await openDatabase(config, createLog('warn'), { isPatient: true }).catch(
    (cause: unknown) => {
      const why = cause instanceof Error ? cause.message : String(cause)
      throw new Error(`${why} ${whileInUse}`, { cause })
    },
  )
  try {
    const pending = await database.pendingMigrations()
    if (pending.length > 0)
      throw new Error(
        `The database is missing migrations or functions (${nameFirst(pending)}). Run "bursar migrate".`,
      )
    return await work(database, config)
  } finally {
    await database.close()
  }
}

function nameFirst(names: readonly string[]): string {
  const more = names.length - MAX_NAMES
  return more > 0 ? `${names.slice(0, MAX_NAMES).join(', ')} and ${more} more` : names.join(', ')
}

/** Runs work with the configured keys, then leaves their places. */
export async function withKeys<Result>(
  config: KeyPlaces,
  work: (keys: Keys) => Promise<Result>,
): Promise<Result> {
  const keys = createConfiguredKeys(config)
  try {
    return await work(keys)
  } finally {
    await keys.close()
  }
}

/** The data key: DATA_KEY, or the sandbox's own; null if neither exists. */
export function readDataKey(database: Database, config: KeyConfig): Promise<DataKey | null> {
  return withKeys(config, (keys) => readDataKeyBy(keys, database, config))
}

/** As {@link readDataKey}, with keys that are open already: a process opens its tokens once. */
export async function readDataKeyBy(
  keys: Pick<Keys, 'openSecret'>,
  database: Database,
  config: KeyConfig,
): Promise<DataKey | null> {
  const { current: configured, previous } = await openDataKeys(keys, config)
  const kept = await database.kysely
    .selectFrom('sandbox_secret')
    .select('value')
    .where('name', '=', 'data')
    .executeTakeFirst()
  const current = configured ?? kept?.value
  return current === undefined ? null : openDataKey(database, { current, previous })
}

/** The keys that a command signs documents with; null without a data key. */
export function withSigningKey<Result>(
  database: Database,
  config: KeyConfig,
  work: (keys: { readonly dataKey: DataKey; readonly receiptKey: SigningKey } | null) => Promise<Result>,
): Promise<Result> {
  return withKeys(config, async (keys) => {
    const dataKey = await readDataKeyBy(keys, database, config)
    if (dataKey === null) return work(null)
    return work({ dataKey, receiptKey: await openReceiptKey(keys, { ...config, dataKey }) })
  })
}

/** @throws Error when neither DATA_KEY nor the sandbox's own data key exists. */
export async function loadKeySet(database: Database, config: KeyConfig): Promise<KeySet> {
  const dataKey = await readDataKey(database, config)
  if (dataKey === null)
    throw new Error(
      'The public keys are unavailable: DATA_KEY is not set, and this database has no sandbox key. Set DATA_KEY, or pass a copy of /.well-known/jwks.json with --jwks FILE.',
    )
  return readKeySet(database, dataKey)
}

/** The issuer of receipts: the configured origin, or that of the newest receipt. */
export async function findIssuer(
  database: Database,
  { publicOrigin, host, port }: Pick<Config, 'publicOrigin' | 'host' | 'port'>,
): Promise<string> {
  if (publicOrigin !== null) return publicOrigin
  const { sequence } = await readHead(database)
  const [newest] = await readSealed(database, { after: sequence - 1n, limit: 1 })
  return (newest === undefined ? undefined : decodeJwt(newest.receipt).iss) ?? `http://${host}:${port}`
}
