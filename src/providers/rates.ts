/** Foreign exchange reference rates. */
import { Failure } from '../failures/failure.ts'
import { type Asset, type Money, stablecoinCurrency, stablecoins } from '../money/money.ts'
import type { RateTable } from '../money/rate-table.ts'
import { type UsdValue, usdMicrosAt } from '../money/usd-value.ts'

export interface Rates {
  /** Reads the newest table. @throws Failure `rates_unavailable` when there is none or it is too old for sales. */
  latest(now: Date): Promise<RateTable>
}

/** Keeps the newest publication over restarts. */
export interface KeptRates {
  load(): Promise<RateTable | null>
  save(table: RateTable, at: Date): Promise<void>
}

/**
 * Values money in US dollars. Dollars and their stablecoins need no table. @throws Failure `rates_unavailable` for
 * other assets when there is no table.
 */
export async function valueInUsd(rates: Rates, money: Money, now: Date): Promise<UsdValue> {
  return usdMicrosAt(dollarAssets.has(money.asset) ? dollars(now) : await rates.latest(now), money)
}

/** Reads the newest table, or without one a table of dollars alone, which prices nothing else. */
export async function latestOrDollars(rates: Rates, now: Date): Promise<RateTable> {
  try {
    return await rates.latest(now)
  } catch (error) {
    if (error instanceof Failure && error.code === 'rates_unavailable') return dollars(now)
    throw error
  }
}

const dollarAssets: ReadonlySet<Asset> = new Set<Asset>([
  'USD',
  ...stablecoins.filter((token) => stablecoinCurrency[token] === 'USD'),
])

/** Rates are ratios: with one currency, any number per euro says the same. */
function dollars(now: Date): RateTable {
  return { source: 'none: dollars count as dollars', asOf: now, perEuro: new Map([['USD', '1']]) }
}
