/** The database port over a pool of sessions: what both engines share. */
import { Kysely } from 'kysely'
import type { Connection, Database, Parameter, Statement } from './database.ts'
import { dialectOn } from './dialect.ts'
import { migrateToLatest, missingMigrations } from './migrate.ts'
import type { Schema } from './schema.ts'
import type { Session, SessionPool } from './session-pool.ts'
import { isConflict } from './unavailable.ts'

/** Whoever won the conflict is done by the second try, but may not have been alone. */
const MOST_RETRIES = 4

/**
 * A database over these sessions.
 * @param migrationPool opens sessions that may wait long, and that are closed again, for migrations; `pool` by default.
 */
export function databaseOnPool(
  engine: Database['engine'],
  pool: SessionPool,
  migrationPool?: () => SessionPool,
): Database {
  const kysely = new Kysely<Schema>({ dialect: dialectOn(pool) })
  return {
    engine,
    kysely,
    call: async <Row>(statement: Statement, parameters: readonly Parameter[]) => {
      const session = await pool.acquire()
      try {
        return await patiently(
          async () => (await session.query<Row>(statement.text, parameters, statement.name)).rows,
        )
      } finally {
        session.release()
      }
    },
    transaction: (work) => inTransaction(pool, work),
    migrate: async () => {
      if (migrationPool === undefined) return migrateToLatest(kysely)
      const patient = new Kysely<Schema>({ dialect: dialectOn(migrationPool()) })
      try {
        return await migrateToLatest(patient)
      } finally {
        await patient.destroy()
      }
    },
    pendingMigrations: () => missingMigrations(kysely),
    connections: () => pool.count(),
    // Not kysely.destroy(): it leaves the pool alone where no query ran through Kysely yet.
    close: () => pool.end(),
  }
}

/** Runs a statement that is a transaction of its own, and again where the server took it back for another's sake. */
async function patiently<Result>(run: () => Promise<Result>): Promise<Result> {
  for (let left = MOST_RETRIES; left > 0; left -= 1) {
    try {
      return await run()
    } catch (error) {
      if (!isConflict(error)) throw error
    }
  }
  return run()
}

async function inTransaction<Result>(
  pool: SessionPool,
  work: (connection: Connection) => Promise<Result>,
): Promise<Result> {
  const session = await pool.acquire()
  let broken = false
  try {
    await session.query('begin', [])
    const result = await work(connectionOn(session))
    const { command } = await session.query('commit', [])
    // The server rolls back where a statement failed, even when the work went on as if nothing had happened.
    if (command !== 'COMMIT')
      throw new Error('The transaction was rolled back: a statement in it had failed.')
    return result
  } catch (error) {
    // A session that cannot even roll back is thrown away: its server side ends with it, and so does the transaction.
    await session.query('rollback', []).catch(() => {
      broken = true
    })
    throw error
  } finally {
    session.release(broken)
  }
}

function connectionOn(session: Session): Connection {
  let kysely: Kysely<Schema> | undefined
  return {
    // Made when first asked for: a transaction of money functions alone never needs it.
    get kysely() {
      kysely ??= new Kysely<Schema>({ dialect: dialectOn(alone(session)) })
      return kysely
    },
    call: async <Row>(statement: Statement, parameters: readonly Parameter[]) =>
      (await session.query<Row>(statement.text, parameters, statement.name)).rows,
  }
}

/** A pool of this one session, which stays with its transaction. */
function alone(session: Session): SessionPool {
  return {
    acquire: async () => ({ query: session.query, release: () => {} }),
    count: () => ({ busy: 1, idle: 0, waiting: 0 }),
    end: async () => {},
  }
}
