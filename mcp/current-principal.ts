/** What a credential turned into is read anew on every request; what outlives one reads it again. */
import { findKey } from '../src/identity/store.ts'
import type { Connection } from '../src/storage/database.ts'
import type { McpCaller } from './caller.ts'

/** The caller's key and account as they are now. @returns null where neither can call any longer. */
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
