/** Where foreign exchange reference rates come from. */
import type { RateTable } from '../money/rate-table.ts'

/** The rates port. */
export interface Rates {
  /** The newest table. @throws Failure `rates_unavailable` where there is none or the newest is too old to sell. */
  latest(now: Date): Promise<RateTable>
}
