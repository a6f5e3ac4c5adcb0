/** Foreign exchange reference rates. */
import type { RateTable } from '../money/rate-table.ts'

export interface Rates {
  /** Reads the newest table. @throws Failure `rates_unavailable` when there is none or it is too old for sales. */
  latest(now: Date): Promise<RateTable>
}
