/** Tables of alarms and of the deployment. */
import type { Generated } from 'kysely'
import type { Json } from '../base/json.ts'
import type { JsonColumn } from './schema.ts'

export interface AlarmTables {
  alarm: AlarmTable
  deployment: DeploymentTable
}

/** A contradictory report. `resolved_at` null: its object is stopped. */
interface AlarmTable {
  domain: 'audit' | 'banking' | 'cards' | 'investing' | 'compliance'
  object_id: string
  reason: string
  reported: JsonColumn<Json>
  times: Generated<number>
  first_seen_at: Date
  last_seen_at: Date
  resolved_at: Date | null
  resolved_by: string | null
  note: string | null
}

/** A value that all gateways on this database must share. */
interface DeploymentTable {
  name: 'data_key' | 'chain_id' | 'chain_owner'
  value: string
  written_at: Date
}
