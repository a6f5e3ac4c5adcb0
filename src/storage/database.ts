/**
 * The database port: one SQL dialect on two engines. Kysely reads and migrates; `call` runs the money functions as
 * named statements in one round trip. Both engines return int8 as bigint, bytea as Uint8Array and timestamptz as
 * Date.
 */
import type { Kysely } from 'kysely'
import type { Schema } from './schema.ts'

/** A raw statement, prepared once per connection under its name; each name has exactly one text. */
export interface Statement {
  readonly name: string
  readonly text: string
  /**
   * Batches that {@link Connection.gather} runs side by side on PostgreSQL, 2 by default. With one, batches are largest and
   * cheapest, but a batch that waits for a lock delays all calls; more answer sooner.
   */
  readonly lanes?: number
}

/** A parameter type that both engines accept. Arrays become PostgreSQL arrays; JSON is passed as text. */
export type Parameter = string | number | bigint | boolean | Date | Uint8Array | null | readonly string[]

/** One object of the array of {@link Connection.gather}. Bigints and dates travel as text. */
export type Gathered = Readonly<Record<string, Exclude<Parameter, Uint8Array>>>

/** The database itself, or one of its transactions. */
export interface Connection {
  readonly kysely: Kysely<Schema>
  /** Runs a statement. A test compares `Row` and the parameters of every call with what both engines say of its statement. */
  call<Row>(statement: Statement, parameters: readonly Parameter[]): Promise<Row[]>
  /**
   * Runs a statement that takes a JSON array of objects as $1 and returns a row for each of them, in their order, and
   * returns the row of the given object. Outside transactions, calls that wait for each other share a round trip and a
   * commit. @param line calls of one line, which would wait for each other's locks, are never sent side by side.
   */
  gather<Row>(statement: Statement, element: Gathered, line?: string): Promise<Row>
}

/** Adapters: `pglite` (embedded, the sandbox's default) and `postgres`. */
export interface Database extends Connection {
  readonly engine: 'pglite' | 'postgres'
  /**
   * Runs work in one transaction; rolls back if it throws. Use only the given connection inside: PGlite has a single
   * one, and waiting for another would deadlock.
   */
  transaction<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result>
  /**
   * Applies missing migrations and changed functions. Safe to run in several processes at once. @returns their names:
   * `0001-baseline`, `function spend_reserve`.
   */
  migrate(): Promise<readonly string[]>
  /**
   * Missing migrations, and functions that differ from this program's. Functions of a newer program are not included.
   */
  pendingMigrations(): Promise<readonly string[]>
  /** Connections of this process by state, and the number of waiting calls. */
  connections(): Readonly<Record<'busy' | 'idle' | 'waiting', number>>
  close(): Promise<void>
}

/** Announces activity to the other gateways on one database. */
export interface Doorbell {
  /** Never fails and never waits: a sweep finds the work behind a lost announcement. */
  ring(): void
  close(): Promise<void>
}

/** Returns the row of a statement that always returns one. @throws Error when there is none, which is a bug. */
export async function callForRow<Row>(
  connection: Pick<Connection, 'call'>,
  statement: Statement,
  parameters: readonly Parameter[],
): Promise<Row> {
  const [row] = await connection.call<Row>(statement, parameters)
  if (row === undefined) throw new Error(`${statement.name} returned no row`)
  return row
}
