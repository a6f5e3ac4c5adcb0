/** Market prices of stablecoins, which are counted at par only while they hold it. */
import type { Stablecoin } from '../../core/money/money.ts'

/** A price below it is a lost peg, in millionths of the token's currency. */
const LOST_BELOW_MICROS = 980_000n

export interface Pegs {
  /**
   * Reads which stablecoins have lost their peg: their price is below 0.98 of their currency.
   * @throws Failure `rates_unavailable` when a configured price cannot be read or is too old.
   */
  findLost(now: Date): Promise<ReadonlySet<Stablecoin>>
  /** Sandbox only: sets a price in millionths of the token's currency. Null for other adapters. */
  readonly setPrice: ((token: Stablecoin, micros: bigint, at: Date) => Promise<void>) | null
}

/** Picks the stablecoins that have lost their peg. @param prices in millionths of each one's currency. */
export function lostPegs(prices: Iterable<readonly [Stablecoin, bigint]>): ReadonlySet<Stablecoin> {
  return new Set([...prices].flatMap(([token, micros]) => (micros < LOST_BELOW_MICROS ? [token] : [])))
}
