/** Implements the database port on a session pool, for both engines. */
import { Kysely } from 'kysely'
import type { Connection, Database, Parameter, Statement } from './database.ts'
import { dialectOn } from './dialect.ts'
import { createGathering, gatherAlone } from './gather.ts'
import { migrateToLatest, missingMigrations } from './migrate.ts'
import type { Schema } from './schema.ts'
import type { Session, SessionPool } from './session-pool.ts'
import { isConflict } from './unavailable.ts'

/** The winner of a conflict is usually done by the second attempt; several conflicts need more. */
const MAX_RETRIES = 4

/** @param migrationPool opens sessions without time limits for migrations; `pool` by default. */
export function databaseOnPool(
  engine: Database['engine'],
  pool: SessionPool,
  migrationPool?: () => SessionPool,
): Database {
  const kysely = new Kysely<Schema>({ dialect: dialectOn(pool) })
  const call = async <Row>(statement: Statement, parameters: readonly Parameter[]) => {
    const session = await pool.acquire()
    try {
      return await retryConflicts(
        async () => (await session.query<Row>(statement.text, parameters, statement.name)).rows,
      )
    } finally {
      session.release()
    }
  }
  return {
    engine,
    kysely,
    call,
    gather: createGathering(engine, (statement, elements) => call(statement, [elements])),
    transaction: (work) => inTransaction(pool, work),
    migrate: async () => {
      if (migrationPool === undefined) return migrateToLatest(kysely)
      const migrating = new Kysely<Schema>({ dialect: dialectOn(migrationPool()) })
      try {
        return await migrateToLatest(migrating)
      } finally {
        await migrating.destroy()
      }
    },
    pendingMigrations: () => missingMigrations(kysely),
    connections: () => pool.count(),
    // kysely.destroy() would not close the pool before the first Kysely query.
    close: () => pool.end(),
  }
}

/** Runs a single-statement transaction, and retries it after a conflict. */
async function retryConflicts<Result>(run: () => Promise<Result>): Promise<Result> {
  for (let left = MAX_RETRIES; left > 0; left -= 1) {
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
  let isOver = false
  // A late statement would run in a transaction of the session's next user.
  const own: Pick<Session, 'query'> = {
    query: (text, parameters, name) =>
      isOver
        ? Promise.reject(new Error(`A statement of a transaction that is over: ${name ?? text}`))
        : session.query(text, parameters, name),
  }
  try {
    await session.query('begin', [])
    const result = await work(connectionOn(own))
    isOver = true
    const { command } = await session.query('commit', [])
    // The server rolls back if any statement failed, even if the work ignored the error.
    if (command !== 'COMMIT')
      throw new Error('The transaction was rolled back because a statement in it failed.')
    return result
  } catch (error) {
    isOver = true
    // A session that cannot roll back is discarded, which ends its transaction on the server.
    await session.query('rollback', []).catch(() => {
      broken = true
    })
    throw error
  } finally {
    session.release(broken)
  }
}

function connectionOn(session: Pick<Session, 'query'>): Connection {
  let kysely: Kysely<Schema> | undefined
  const call = async <Row>(statement: Statement, parameters: readonly Parameter[]) =>
    (await session.query<Row>(statement.text, parameters, statement.name)).rows
  return {
    // Created on first use; transactions that only call money functions never need it.
    get kysely() {
      kysely ??= new Kysely<Schema>({ dialect: dialectOn(singleSessionPool(session)) })
      return kysely
    },
    call,
    gather: gatherAlone((statement, elements) => call(statement, [elements])),
  }
}

/** A pool of the transaction's single session. */
function singleSessionPool(session: Pick<Session, 'query'>): SessionPool {
  return {
    acquire: async () => ({ query: session.query, release: () => {} }),
    count: () => ({ busy: 1, idle: 0, waiting: 0 }),
    end: async () => {},
  }
}
