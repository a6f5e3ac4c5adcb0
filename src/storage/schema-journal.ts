/** The journal as Kysely sees it. */
import type { Json } from '../base/json.ts'
import type { JsonColumn } from './schema.ts'

/** The tables. */
export interface JournalTables {
  journal_entry: JournalEntryTable
}

/** A change by a person, an administrator, a key or the gateway itself. */
interface JournalEntryTable {
  sequence: bigint
  id: string
  account_id: string
  at: Date
  actor_kind: 'person' | 'admin' | 'key' | 'system'
  actor_id: string | null
  action: string
  object_kind: string
  object_id: string
  before: JsonColumn<Json | null> | null
  after: JsonColumn<Json | null> | null
  previous: string
  hash: string
  mac: string
}
