/** What the two engines are to the rest of this folder: a pool of sessions, each of which runs one statement at a time. */

/** What a statement answered. @property command what the server says it did: COMMIT of a failed transaction is `ROLLBACK`. */
export interface Answer<Row> {
  readonly rows: Row[]
  readonly command: string
  /** Rows that an INSERT, UPDATE, DELETE or MERGE changed. */
  readonly affected: bigint | undefined
}

/** One session of the server. */
export interface Session {
  /** Runs a statement, or several without parameters. @param name prepares it under this name where the engine can. */
  query<Row>(text: string, parameters: readonly unknown[], name?: string): Promise<Answer<Row>>
  /** Gives the session back. @param broken it must not be used again, such as after a rollback that failed. */
  release(broken?: boolean): void
}

/** Sessions to take. */
export interface SessionPool {
  acquire(): Promise<Session>
  /** Sessions by what they do, and how many callers wait for one. */
  count(): Readonly<Record<'busy' | 'idle' | 'waiting', number>>
  end(): Promise<void>
}

/** Whether a command of this name changes rows, so that its count means affected rows. */
export function changesRows(command: string): boolean {
  return command === 'INSERT' || command === 'UPDATE' || command === 'DELETE' || command === 'MERGE'
}
