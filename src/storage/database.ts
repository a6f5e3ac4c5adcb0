/**
 * The database port: one SQL on two engines. Kysely reads and migrates; `call` runs the money functions as named
 * statements in one round trip. int8 arrives as bigint, bytea as Uint8Array, timestamptz as Date on both engines.
 */
import type { Kysely } from 'kysely'
import type { Schema } from './schema.ts'

/** A raw statement. It is prepared once a connection under its name, which must belong to this one text. */
export interface Statement {
  readonly name: string
  readonly text: string
}

/** A parameter that both engines take alike. Arrays become PostgreSQL arrays; JSON is passed as its text. */
export type Parameter = string | number | bigint | boolean | Date | Uint8Array | null | readonly string[]

/** What a statement can run on: the database itself, or one transaction of it. */
export interface Connection {
  readonly kysely: Kysely<Schema>
  /** Runs a statement. A test compares `Row` and the parameters of every call with what both engines say of its statement. */
  call<Row>(statement: Statement, parameters: readonly Parameter[]): Promise<Row[]>
}

/** The database. Adapters: `pglite` (embedded, the sandbox's default) and `postgres`. */
export interface Database extends Connection {
  readonly engine: 'pglite' | 'postgres'
  /**
   * Runs work in one transaction and commits it, or rolls back where it throws. Inside, only the given connection may be
   * used: PGlite has a single one, and waiting for another would never end.
   */
  transaction<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result>
  /**
   * Applies every migration that is missing and every function that has changed. Safe to run from several processes at once.
   * @returns their names: `0001-baseline`, `function spend_reserve`.
   */
  migrate(): Promise<readonly string[]>
  /**
   * Migrations that this program knows and the database does not have yet, and functions that it has otherwise. The functions
   * of a newer program are not among them.
   */
  pendingMigrations(): Promise<readonly string[]>
  /** Connections of this process by what they do, and how many calls wait for one. */
  connections(): Readonly<Record<'busy' | 'idle' | 'waiting', number>>
  close(): Promise<void>
}

/** The row of a statement that always answers one. @throws Error where it answered none: a bug. */
export async function callForRow<Row>(
  connection: Pick<Connection, 'call'>,
  statement: Statement,
  parameters: readonly Parameter[],
): Promise<Row> {
  const [row] = await connection.call<Row>(statement, parameters)
  if (row === undefined) throw new Error(`${statement.name} answered no row`)
  return row
}
