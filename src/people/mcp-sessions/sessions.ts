/**
 * Sessions of MCP clients up to protocol 2025-11-25, stored so that any instance can serve them. A session is visible
 * only to the key that opened it. May import what domains may.
 */
import { createHash } from 'node:crypto'
import { randomToken } from '../../core/base/ids.ts'
import type { Connection } from '../../storage/database.ts'

/** Lifetime of an unused session. */
const IDLE_MS = 24 * 60 * 60 * 1000

/** Minimum interval between updates of the last use. */
const NOTED_MS = 15 * 60 * 1000

/** Longer than any call waits for an answer. */
const QUESTION_MS = 60 * 60 * 1000

/** Maximum sessions per key; the least recently used one is deleted, and its client initializes again. */
export const SESSIONS_PER_KEY = 64

/** @property capabilities as declared by the client. */
export interface McpSession {
  readonly idHash: Uint8Array
  readonly capabilities: unknown
}

/** @returns the session id, a secret of which only the hash is stored. */
export async function openMcpSession(
  database: Connection,
  { keyId, capabilities, now }: { keyId: string; capabilities: unknown; now: Date },
): Promise<string> {
  const id = randomToken(32)
  await database.kysely
    .insertInto('mcp_session')
    .values({
      id_hash: hashId(id),
      key_id: keyId,
      capabilities: JSON.stringify(capabilities),
      used_at: now,
      expires_at: new Date(now.getTime() + IDLE_MS),
    })
    .execute()
  // After the insert, so that concurrent requests leave the right number.
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

/** @returns undefined if the session has expired or belongs to another key. */
export async function findMcpSession(
  database: Connection,
  { id, keyId, now }: { id: string; keyId: string; now: Date },
): Promise<McpSession | undefined> {
  const idHash = hashId(id)
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

/** Deletes a session and its questions. */
export async function endMcpSession(
  database: Connection,
  { idHash }: Pick<McpSession, 'idHash'>,
): Promise<void> {
  await database.kysely.deleteFrom('mcp_session').where('id_hash', '=', idHash).execute()
}

/** Deletes expired sessions, and questions whose call was lost in a crash. */
export async function sweepMcpSessions(database: Connection, now: Date): Promise<void> {
  const lost = new Date(now.getTime() - QUESTION_MS)
  await database.kysely.deleteFrom('mcp_question').where('asked_at', '<', lost).execute()
  await database.kysely.deleteFrom('mcp_session').where('expires_at', '<=', now).execute()
}

function hashId(id: string): Uint8Array {
  return createHash('sha256').update(id).digest()
}
