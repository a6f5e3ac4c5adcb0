/**
 * Both engines for storage tests: PGlite in memory always, PostgreSQL if TEST_DATABASE_URL names a server. Every suite
 * gets a migrated database of its own, which is dropped afterwards.
 */
import pg from 'pg'
import { afterAll, beforeAll, describe } from 'vitest'
import { systemClock } from '../src/core/base/clock.ts'
import { randomToken } from '../src/core/base/ids.ts'
import { silentLog } from '../src/core/base/log.ts'
import type { Database } from '../src/storage/database.ts'
import { openPglite } from '../src/storage/pglite.ts'
import { openPostgres } from '../src/storage/postgres.ts'
import { isSampled } from './sample.ts'

/** URL of the PostgreSQL test server, if there is one. */
export const testServerUrl = process.env.TEST_DATABASE_URL

const engines = [
  { engine: 'PGlite', isPostgres: false },
  { engine: 'PostgreSQL', isPostgres: true },
] as const

/**
 * The engines of journeys that take many minutes: those that are there; with SAMPLE=commit one of them, chosen by the hash of the
 * commit, so that the next commit probably takes the other.
 */
export const longestEngines = engines
  .filter(({ isPostgres }) => !isPostgres || testServerUrl !== undefined)
  .filter((_, at, there) => isSampled(at, there.length))

/** A migrated PGlite in memory. */
async function freshPglite(): Promise<Database> {
  const database = await openPglite({ directory: 'memory', now: systemClock, log: silentLog })
  await database.migrate()
  return database
}

/** A database of a test. @property drop drops it, ending open connections. */
export interface TestDatabase {
  readonly url: string
  readonly name: string
  readonly drop: () => Promise<void>
}

/**
 * Creates a database on a server: migrated where this run has made a template (see `test/database-template.ts`), because
 * a copy takes half as long.
 */
export function createTestDatabase(serverUrl: string): Promise<TestDatabase> {
  return createDatabase(serverUrl, process.env.TEST_DATABASE_TEMPLATE)
}

/** Creates a database without any table. */
export function createEmptyDatabase(serverUrl: string): Promise<TestDatabase> {
  return createDatabase(serverUrl)
}

async function createDatabase(serverUrl: string, template = 'template0'): Promise<TestDatabase> {
  const name = `bursar_test_${randomToken(9).toLowerCase().replace(/\W/g, '_')}`
  const administer = async (text: string): Promise<void> => {
    const client = new pg.Client({ connectionString: serverUrl })
    await client.connect()
    try {
      await client.query(text)
    } finally {
      await client.end()
    }
  }
  await administer(`create database ${name} template ${template}`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return { url: url.href, name, drop: () => administer(`drop database if exists ${name} with (force)`) }
}

/** Declares a suite once per engine. The database is available within hooks and tests. */
export function onBothEngines(name: string, suite: (database: () => Database) => void): void {
  describe(`${name} on PGlite`, () => {
    withDatabase(suite, async () => ({ database: await freshPglite(), drop: async () => {} }))
  })
  describe.skipIf(testServerUrl === undefined)(`${name} on PostgreSQL`, () => {
    withDatabase(suite, async () => {
      const { url, drop } = await createTestDatabase(testServerUrl ?? '')
      const database = await openPostgres({ url })
      await database.migrate()
      return { database, drop }
    })
  })
}

function withDatabase(
  suite: (database: () => Database) => void,
  open: () => Promise<{ database: Database; drop: () => Promise<void> }>,
): void {
  let opened: { database: Database; drop: () => Promise<void> } | undefined
  beforeAll(async () => {
    opened = await open()
  })
  afterAll(async () => {
    await opened?.database.close()
    await opened?.drop()
  })
  suite(() => {
    if (opened === undefined) throw new Error('The database is open only within hooks and tests.')
    return opened.database
  })
}
