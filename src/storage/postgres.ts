/**
 * The database on a PostgreSQL server, 15 or newer: for anything durable, and for more than one process. Statements and
 * lock waits are bounded; a lost connection is a Failure of the calls that were on it and of nothing else.
 */
import pg from 'pg'
import type { Database } from './database.ts'
import { databaseOnPool } from './database-on-pool.ts'
import { changesRows, type Session, type SessionPool } from './session-pool.ts'
import { asUnavailable, isConnectionLost } from './unavailable.ts'

/** A request asks once more after a statement that failed, for what became of it: all limits together stay below 10 s. */
const STATEMENT_TIMEOUT_MS = 5_000
const LOCK_TIMEOUT_MS = 4_000
const CONNECT_TIMEOUT_MS = 3_000
/** Above the server's own limit: it only ends waits for a server that has gone silent. */
const SILENCE_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 1_000

const INT8 = 20
const BYTEA = 17
const DATE = 1082

/** Columns whose JavaScript type the two engines would give differently. */
const parsers = new Map<number, (text: string) => unknown>([
  [INT8, BigInt],
  [BYTEA, (text) => Uint8Array.from(Buffer.from(text.slice(2), 'hex'))],
  [DATE, (text) => text],
])

/**
 * Opens a database on a server. Connects with the first call, not now.
 * @param url `postgres://…`
 * @param poolSize connections at most, 10 by default.
 */
export async function openPostgres({
  url,
  poolSize = 10,
}: {
  url: string
  poolSize?: number
}): Promise<Database> {
  const bounded = poolOn(url, {
    max: poolSize,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    lock_timeout: LOCK_TIMEOUT_MS,
    query_timeout: SILENCE_TIMEOUT_MS,
    // A transaction that nobody can end any more, because the way here was lost, must not keep its locks.
    idle_in_transaction_session_timeout: SILENCE_TIMEOUT_MS,
  })
  return databaseOnPool('postgres', bounded, () => poolOn(url, { max: 1 }))
}

function poolOn(url: string, config: pg.PoolConfig): SessionPool {
  const pool = new pg.Pool({
    ...config,
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    // pg types a parser by what pg-types would return; ours return what the port promises.
    types: {
      getTypeParser: (oid: number, format?: 'text' | 'binary') =>
        parsers.get(oid) ?? pg.types.getTypeParser(oid, format),
    },
  })
  // Node ends the process on an 'error' event that nobody hears. The pool drops an idle connection that is lost; one in
  // use also fails the statement that is on it.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return {
    acquire: async () => {
      try {
        return sessionOn(await pool.connect())
      } catch (error) {
        throw asUnavailable(error)
      }
    },
    count: () => ({
      busy: pool.totalCount - pool.idleCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
    }),
    end: () => pool.end(),
  }
}

function sessionOn(client: pg.PoolClient): Session {
  let lost = false
  return {
    query: async <Row>(text: string, parameters: readonly unknown[], name?: string) => {
      // Row is the caller's word for what its statement answers; pg constrains it to an object, which every row is.
      const values = [...parameters]
      // Whatever is sent to a session that has gone silent would only wait behind the statement that it never answered.
      if (lost) throw asUnavailable(new Error('Connection terminated'))
      try {
        const result = await client.query<Row & pg.QueryResultRow>(
          name === undefined ? { text, values } : { name, text, values },
        )
        const affected = changesRows(result.command) ? BigInt(result.rowCount ?? 0) : undefined
        return { rows: result.rows, command: result.command, affected }
      } catch (error) {
        lost ||= isConnectionLost(error)
        throw asUnavailable(error)
      }
    },
    release: (broken = false) => client.release(broken || lost),
  }
}
