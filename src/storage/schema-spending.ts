/** The tables of spending as Kysely sees them. */
import type { Generated } from 'kysely'
import type { Json } from '../base/json.ts'
import type { JsonColumn } from './schema.ts'

/** A spend that was allowed: what it holds and what it counts for. `day` is `YYYY-MM-DD`. Without a source it holds nothing. */
export interface ReservationTable {
  decision_id: string
  account_id: string
  key_id: string | null
  day: string
  usd_micros: bigint
  source: string | null
  held: string | null
  asset: string
  units: bigint
  status: 'reserved' | 'settled' | 'released'
  reserved_at: Date
  resolved_at: Date | null
  /** What of the units has gone already, where they go in parts. */
  taken: Generated<bigint>
  /** The AML windows that it is counted in. */
  windows: JsonColumn<Json | null> | null
}

/** What left an account within a 24th of an AML window. */
export interface OutflowSlotTable {
  account_id: string
  rule: 'velocity' | 'structuring'
  seconds: number
  slot: bigint
  usd_micros: bigint
  count: number
}
