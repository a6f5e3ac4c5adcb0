/** Kysely dialect on a session pool: PostgreSQL's compiler and introspection with the sessions of either engine. */
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from 'kysely'
import type { Session, SessionPool } from './session-pool.ts'

export function dialectOn(pool: SessionPool): Dialect {
  return {
    createAdapter: () => new PostgresAdapter(),
    createIntrospector: (kysely) => new PostgresIntrospector(kysely),
    createQueryCompiler: () => new PostgresQueryCompiler(),
    createDriver: () => {
      const sessions = new WeakMap<DatabaseConnection, Session>()
      const run = async (connection: DatabaseConnection, text: string): Promise<void> => {
        await connection.executeQuery(CompiledQuery.raw(text))
      }
      return {
        init: async () => {},
        acquireConnection: async () => {
          const session = await pool.acquire()
          const connection = connectionOn(session)
          sessions.set(connection, session)
          return connection
        },
        beginTransaction: (connection) => run(connection, 'begin'),
        commitTransaction: (connection) => run(connection, 'commit'),
        rollbackTransaction: (connection) => run(connection, 'rollback'),
        releaseConnection: async (connection) => sessions.get(connection)?.release(),
        destroy: () => pool.end(),
      }
    },
  }
}

function connectionOn(session: Session): DatabaseConnection {
  return {
    executeQuery: async <Row>({ sql, parameters }: CompiledQuery) => {
      const { rows, affected } = await session.query<Row>(sql, parameters)
      return affected === undefined ? { rows } : { rows, numAffectedRows: affected }
    },
    // biome-ignore lint/correctness/useYield: the interface wants a generator; nothing here streams.
    streamQuery: async function* () {
      throw new Error('Streaming is not supported; page through the rows instead.')
    },
  }
}
