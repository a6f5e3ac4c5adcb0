/** Tables of `sql/migrations/0001-baseline/18-mcp.sql`. */
import type { JsonColumn } from './schema.ts'

/** @property id_hash SHA-256 of the secret session id. */
interface McpSessionTable {
  id_hash: Uint8Array
  key_id: string
  capabilities: JsonColumn<unknown>
  used_at: Date
  expires_at: Date
}

/** An elicitation; the answer may arrive at another instance. */
interface McpQuestionTable {
  id: string
  session_id_hash: Uint8Array
  answer: JsonColumn<unknown> | null
  asked_at: Date
}

export interface McpTables {
  mcp_session: McpSessionTable
  mcp_question: McpQuestionTable
}
