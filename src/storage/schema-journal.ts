/** Table of the journal. */
import type { Json } from '../base/json.ts'
import type { JsonColumn } from './schema.ts'

export interface JournalTables {
  journal_entry: JournalEntryTable
}

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
