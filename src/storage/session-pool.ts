/** Common interface of both engines: a pool of sessions that run one statement at a time. */

/** @property command as reported by the server: COMMIT of a failed transaction is `ROLLBACK`. */
export interface Answer<Row> {
  readonly rows: Row[]
  readonly command: string
  /** Rows changed by an INSERT, UPDATE, DELETE or MERGE. */
  readonly affected: bigint | undefined
}

export interface Session {
  /**
   * Runs a statement, or several without parameters. @param name prepares the statement under this name, if the
   * engine supports it.
   */
  query<Row>(text: string, parameters: readonly unknown[], name?: string): Promise<Answer<Row>>
  /** Returns the session to the pool. @param broken discards it, for example after a failed rollback. */
  release(broken?: boolean): void
}

export interface SessionPool {
  acquire(): Promise<Session>
  /** Sessions by state, and the number of waiting callers. */
  count(): Readonly<Record<'busy' | 'idle' | 'waiting', number>>
  end(): Promise<void>
}

/** True for commands whose row count means affected rows. */
export function changesRows(command: string): boolean {
  return command === 'INSERT' || command === 'UPDATE' || command === 'DELETE' || command === 'MERGE'
}
