/** Reloads the principal for work that outlives its request. */
import { findKey } from '../src/people/identity/store.ts'
import type { Connection } from '../src/storage/database.ts'
import type { McpCaller } from './caller.ts'

/** Loads the caller's current key and account. @returns null when either can no longer make calls. */
export async function currentPrincipal(
  database: Connection,
  { principal }: Pick<McpCaller, 'principal'>,
  now: Date,
): Promise<McpCaller['principal'] | null> {
  const found = await findKey(database, { id: principal.key.id })
  if (found === undefined) return null
  const { key, account } = found
  const isOver = key.expiresAt !== null && key.expiresAt <= now
  if (isOver || key.status !== 'active' || account.status !== 'active') return null
  return { kind: 'key', ...found }
}
