/**
 * Sessions of MCP clients up to protocol 2025-11-25, in the shared store: whichever instance a request reaches serves it.
 * A session belongs to the key that opened it; to all others it does not exist. May import what domains may.
 */
import { createHash } from 'node:crypto'
import { randomToken } from '../base/ids.ts'
import type { Connection } from '../storage/database.ts'

/** How long a session lives that nobody uses. */
const IDLE_MS = 24 * 60 * 60 * 1000

/** How seldom it is written down that a session is used. */
const NOTED_MS = 15 * 60 * 1000

/** Longer than any call waits for an answer. */
const QUESTION_MS = 60 * 60 * 1000

/** Sessions that a key may have: the one that was used longest ago gives way, and its client begins anew. */
export const SESSIONS_PER_KEY = 64

/** A session. @property capabilities what its client says it can do, as it said it. */
export interface McpSession {
  readonly idHash: Uint8Array
  readonly capabilities: unknown
}

/** Opens a session. @returns its id: a secret, of which only the hash is kept. */
export async function openMcpSession(
  database: Connection,
  { keyId, capabilities, now }: { keyId: string; capabilities: unknown; now: Date },
): Promise<string> {
  const id = randomToken(32)
  await database.kysely
    .insertInto('mcp_session')
    .values({
      id_hash: hashOf(id),
      key_id: keyId,
      capabilities: JSON.stringify(capabilities),
      used_at: now,
      expires_at: new Date(now.getTime() + IDLE_MS),
    })
    .execute()
  // After the insert, so that of several at once the last one leaves the right number.
  await database.kysely
    .deleteFrom('mcp_session')
    .where('id_hash', 'in', (query) =>
      query
        .selectFrom('mcp_session')
        .select('id_hash')
        .where('key_id', '=', keyId)
        .orderBy('used_at', 'desc')
        .orderBy('id_hash')
        .offset(SESSIONS_PER_KEY),
    )
    .execute()
  return id
}

/** The session of a key. @returns undefined where it has ended, or is not this key's. */
export async function findMcpSession(
  database: Connection,
  { id, keyId, now }: { id: string; keyId: string; now: Date },
): Promise<McpSession | undefined> {
  const idHash = hashOf(id)
  const row = await database.kysely
    .selectFrom('mcp_session')
    .select(['capabilities', 'used_at'])
    .where('id_hash', '=', idHash)
    .where('key_id', '=', keyId)
    .where('expires_at', '>', now)
    .executeTakeFirst()
  if (row === undefined) return undefined
  if (now.getTime() - row.used_at.getTime() > NOTED_MS)
    await database.kysely
      .updateTable('mcp_session')
      .set({ used_at: now, expires_at: new Date(now.getTime() + IDLE_MS) })
      .where('id_hash', '=', idHash)
      .execute()
  return { idHash, capabilities: row.capabilities }
}

/** Ends a session, and with it what its client is asked. */
export async function endMcpSession(
  database: Connection,
  { idHash }: Pick<McpSession, 'idHash'>,
): Promise<void> {
  await database.kysely.deleteFrom('mcp_session').where('id_hash', '=', idHash).execute()
}

/** Forgets sessions that have ended, and questions whose call was lost with its process. */
export async function sweepMcpSessions(database: Connection, now: Date): Promise<void> {
  const lost = new Date(now.getTime() - QUESTION_MS)
  await database.kysely.deleteFrom('mcp_question').where('asked_at', '<', lost).execute()
  await database.kysely.deleteFrom('mcp_session').where('expires_at', '<=', now).execute()
}

function hashOf(id: string): Uint8Array {
  return createHash('sha256').update(id).digest()
}
