/** Tables of spending. */
import type { Generated } from 'kysely'
import type { Json } from '../base/json.ts'
import type { JsonColumn } from './schema.ts'

/** An allowed spend with its hold and budget. `day` is `YYYY-MM-DD`. Without a source it holds nothing. */
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
  /** Units already taken, for partial settlements. */
  taken: Generated<bigint>
  /** AML windows that count the spend. */
  windows: JsonColumn<Json | null> | null
}

/** Outflow of an account within a 24th of an AML window. */
export interface OutflowSlotTable {
  account_id: string
  rule: 'velocity' | 'structuring'
  seconds: number
  slot: bigint
  usd_micros: bigint
  count: number
}
