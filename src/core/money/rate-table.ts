/** Foreign exchange reference rates. @see https://www.ecb.europa.eu/stats/policy_and_exchange_rates */

/**
 * One publication.
 * @property lost stablecoins that have lost their peg: they are not counted at par, and have no rate. `perEuro` maps ISO 4217 codes to decimal strings: units of the currency per 1 EUR; EUR is `1`.
 */
export interface RateTable {
  readonly source: string
  /** Publication time of the rates. */
  readonly asOf: Date
  readonly perEuro: ReadonlyMap<string, string>
  readonly lost?: ReadonlySet<string> | undefined
}
