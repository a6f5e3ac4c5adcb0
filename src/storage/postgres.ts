/**
 * The database on a PostgreSQL server, 15 or newer, for durable data and several processes. Statements and lock waits
 * are bounded; a lost connection fails only the calls on it.
 */
import pg from 'pg'
import { splitHosts } from '../core/base/host-urls.ts'
import { Failure } from '../core/failures/failure.ts'
import type { Database } from './database.ts'
import { databaseOnPool } from './database-on-pool.ts'
import { findWritableHost, type WritableHost } from './postgres-hosts.ts'
import { changesRows, type Session, type SessionPool } from './session-pool.ts'
import { asUnavailable, isConnectionLost, isReadOnly } from './unavailable.ts'

/** After a failed statement, a request makes one more query for its outcome; all limits together stay below 10 s. */
const STATEMENT_TIMEOUT_MS = 5_000
const LOCK_TIMEOUT_MS = 4_000
const CONNECT_TIMEOUT_MS = 3_000
/** Sessions that stay open at rest: a new one takes several times as long for its first transfer or purchase. */
const WARM_SESSIONS = 4
/** Idle sessions are probed after this long: a firewall forgets a silent one, and a dead one is dropped. */
const KEEP_ALIVE_MS = 10_000
/** Above the server's own limit; only ends waits for a silent server. */
const SILENCE_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 1_000

const BEGIN_WITH_LIMITS = `begin;
  set local statement_timeout = ${STATEMENT_TIMEOUT_MS};
  set local lock_timeout = ${LOCK_TIMEOUT_MS};
  set local idle_in_transaction_session_timeout = ${SILENCE_TIMEOUT_MS}`

const INT8 = 20
const BYTEA = 17
const DATE = 1082

/** Column types that the two engines would otherwise parse differently. */
const parsers = new Map<number, (text: string) => unknown>([
  [INT8, BigInt],
  [BYTEA, (text) => Uint8Array.from(Buffer.from(text.slice(2), 'hex'))],
  [DATE, (text) => text],
])

/**
 * Connects on the first call. @param url `postgres://…`, with several hosts separated by commas where the database may
 * fail over. @param poolerUrl a pooler in transaction mode before it, used for all but migrations. @param poolSize maximum
 * connections, 10 by default. @param isPatient no time limits, for a command that reads months.
 */
export async function openPostgres({
  url,
  poolerUrl = null,
  poolSize = 10,
  isPatient = false,
}: {
  url: string
  poolerUrl?: string | null
  poolSize?: number
  isPatient?: boolean
}): Promise<Database> {
  const unlimited = () => failoverPool(splitHosts(url), { max: isPatient ? 2 : 1 })
  if (isPatient) return databaseOnPool('postgres', unlimited(), unlimited)
  const bounds = { max: poolSize, min: Math.min(WARM_SESSIONS, poolSize), query_timeout: SILENCE_TIMEOUT_MS }
  const bounded =
    poolerUrl === null
      ? failoverPool(splitHosts(url), {
          ...bounds,
          statement_timeout: STATEMENT_TIMEOUT_MS,
          lock_timeout: LOCK_TIMEOUT_MS,
          // Transactions orphaned by a lost connection must not keep their locks.
          idle_in_transaction_session_timeout: SILENCE_TIMEOUT_MS,
        })
      : poolOn(poolerUrl, bounds, throughPooler)
  return databaseOnPool('postgres', bounded, unlimited)
}

/** A pool on the writable one of several hosts; it moves when that host is lost or became a standby. */
function failoverPool(urls: readonly string[], config: pg.PoolConfig): SessionPool {
  const [only, second] = urls
  if (only !== undefined && second === undefined) return poolOn(only, config)
  let current: SessionPool | undefined
  // A former primary is never used again, even if it is the only host that answers.
  let last: WritableHost | undefined
  let searching: Promise<SessionPool> | undefined
  const search = () => {
    searching ??= findWritableHost(urls, last)
      .then((host) => {
        last = host
        current = poolOn(host.url, config)
        return current
      })
      .finally(() => {
        searching = undefined
      })
    return searching
  }
  const leave = (pool: SessionPool) => {
    if (current !== pool) return
    current = undefined
    // Its sessions end by their own limits.
    pool.end().catch(() => {})
  }
  return {
    acquire: async () => {
      try {
        const pool = current ?? (await search())
        try {
          return watchSession(await pool.acquire(), () => leave(pool))
        } catch (error) {
          // A pool without a free session says nothing of its host.
          if (pool.count().busy >= (config.max ?? 1)) throw error
          // Refused before anything was sent: another host may accept it.
          leave(pool)
          const next = await search()
          return watchSession(await next.acquire(), () => leave(next))
        }
      } catch (error) {
        throw asUnavailable(error)
      }
    },
    count: () => current?.count() ?? { busy: 0, idle: 0, waiting: 0 },
    end: async () => {
      await (current ?? (await searching?.catch(() => undefined)))?.end()
    },
  }
}

/** @param leave called when a statement shows that the host is lost or does not accept writes. */
function watchSession(session: Session, leave: () => void): Session {
  return {
    query: async (text, parameters, name) => {
      try {
        return await session.query(text, parameters, name)
      } catch (error) {
        const cause = error instanceof Failure ? error.cause : error
        if (isConnectionLost(cause) || isReadOnly(cause)) leave()
        throw error
      }
    },
    release: (broken) => session.release(broken),
  }
}

/**
 * Session of a pooler in transaction mode. The next transaction may run on another server connection, so nothing is set or
 * prepared for a session: statements have no name, and a transaction sets its own limits. Limits of single statements are the
 * role's.
 */
const throughPooler: OpenSession = (client) => {
  const session = sessionOn(client)
  return {
    ...session,
    query: (text, parameters) => session.query(text === 'begin' ? BEGIN_WITH_LIMITS : text, parameters),
  }
}

type OpenSession = (client: pg.PoolClient) => Session

function poolOn(url: string, config: pg.PoolConfig, openSession: OpenSession = sessionOn): SessionPool {
  const pool = new pg.Pool({
    ...config,
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
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
        return openSession(await pool.connect())
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
        const answer: pg.QueryResult<Row & pg.QueryResultRow> | pg.QueryResult<Row & pg.QueryResultRow>[] =
          await client.query<Row & pg.QueryResultRow>(
            name === undefined ? { text, values } : { name, text, values },
          )
        // Several statements have several results.
        const result = Array.isArray(answer) ? answer[0] : answer
        if (result === undefined) return { rows: [], command: '', affected: undefined }
        const affected = changesRows(result.command) ? BigInt(result.rowCount ?? 0) : undefined
        return { rows: result.rows, command: result.command, affected }
      } catch (error) {
        // A server that was demoted accepts no writes: the next session may be on its successor.
        lost ||= isConnectionLost(error) || isReadOnly(error)
        throw asUnavailable(error)
      }
    },
    release: (broken = false) => client.release(broken || lost),
  }
}
