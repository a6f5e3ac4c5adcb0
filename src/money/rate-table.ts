/** A publication of foreign exchange reference rates. @see https://www.ecb.europa.eu/stats/policy_and_exchange_rates */

/** Rates of one publication. `perEuro` maps ISO 4217 codes to a decimal string: units of the currency for 1 EUR; EUR is `1`. */
export interface RateTable {
  readonly source: string
  /** When the publisher says the rates hold. */
  readonly asOf: Date
  readonly perEuro: ReadonlyMap<string, string>
}
