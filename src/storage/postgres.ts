/**
 * The database on a PostgreSQL server, 15 or newer, for durable data and several processes. Statements and lock waits
 * are bounded; a lost connection fails only the calls on it.
 */
import pg from 'pg'
import type { Database } from './database.ts'
import { databaseOnPool } from './database-on-pool.ts'
import { changesRows, type Session, type SessionPool } from './session-pool.ts'
import { asUnavailable, isConnectionLost } from './unavailable.ts'

/** After a failed statement, a request makes one more query for its outcome; all limits together stay below 10 s. */
const STATEMENT_TIMEOUT_MS = 5_000
const LOCK_TIMEOUT_MS = 4_000
const CONNECT_TIMEOUT_MS = 3_000
/** Above the server's own limit; only ends waits for a silent server. */
const SILENCE_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 1_000

const INT8 = 20
const BYTEA = 17
const DATE = 1082

/** Column types that the two engines would otherwise parse differently. */
const parsers = new Map<number, (text: string) => unknown>([
  [INT8, BigInt],
  [BYTEA, (text) => Uint8Array.from(Buffer.from(text.slice(2), 'hex'))],
  [DATE, (text) => text],
])

/** Connects on the first call. @param url `postgres://…` @param poolSize maximum connections, 10 by default. */
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
    // Transactions orphaned by a lost connection must not keep their locks.
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
    // pg types parsers by the results of pg-types; ours return the types of the port.
    types: {
      getTypeParser: (oid: number, format?: 'text' | 'binary') =>
        parsers.get(oid) ?? pg.types.getTypeParser(oid, format),
    },
  })
  // Node ends the process on an 'error' event without a listener. The pool drops a lost idle connection; a lost
  // active one also fails its statement.
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
      // The caller declares the row type of its statement; pg constrains it to an object, which every row is.
      const values = [...parameters]
      // Statements on a silent session would only queue behind the unanswered one.
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
