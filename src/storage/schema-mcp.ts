/** The tables of `sql/migrations/0001-baseline/18-mcp.sql` as Kysely sees them. */
import type { JsonColumn } from './schema.ts'

/** A client's session. @property id_hash SHA-256 of the id, which is a secret. */
interface McpSessionTable {
  id_hash: Uint8Array
  key_id: string
  capabilities: JsonColumn<unknown>
  used_at: Date
  expires_at: Date
}

/** What a client was asked while its call waits; the answer may arrive at another instance. */
interface McpQuestionTable {
  id: string
  session_id_hash: Uint8Array
  answer: JsonColumn<unknown> | null
  asked_at: Date
}

/** What a migration of its own adds. */
export interface McpTables {
  mcp_session: McpSessionTable
  mcp_question: McpQuestionTable
}
